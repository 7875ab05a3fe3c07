"""OpenVINO's Low Precision Transformations in Python."""

from ovlpt import plugin_config, predicates
from ovlpt.config import (
    Params,
    PassConfig,
    PluginConfig,
    PrecisionsRestriction,
    QuantizationGranularityRestriction,
)
from ovlpt.config_file import load_config
from ovlpt.device import PluginLowering, compile_model, execution_types, save_model, transform
from ovlpt.fusions import fuse
from ovlpt.inspect.bench import bench
from ovlpt.inspect.check import check
from ovlpt.inspect.compare import compare
from ovlpt.inspect.explain import explain
from ovlpt.low_precision import LowPrecision
from ovlpt.trace import Trace

__all__ = [
    "LowPrecision",
    "Params",
    "PassConfig",
    "PluginConfig",
    "PluginLowering",
    "PrecisionsRestriction",
    "QuantizationGranularityRestriction",
    "Trace",
    "bench",
    "check",
    "compare",
    "compile_model",
    "execution_types",
    "explain",
    "fuse",
    "load_config",
    "plugin_config",
    "predicates",
    "save_model",
    "transform",
]
