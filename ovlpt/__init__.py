"""OpenVINO's Low Precision Transformations in Python. Each name is imported when it is first used."""

from __future__ import annotations

import os
from importlib import import_module

from ovlpt.version import VERSION

TYPE_CHECKING = False  # as of typing, whose import takes longer than all that is done here
if TYPE_CHECKING:  # for type checkers, editors and the API reference, which do not call __getattr__
    from typing import Any

    from ovlpt import plugin_config as plugin_config
    from ovlpt import predicates as predicates
    from ovlpt.common_optimizations import CommonOptimizations as CommonOptimizations
    from ovlpt.config import Params as Params
    from ovlpt.config import PassConfig as PassConfig
    from ovlpt.config import PluginConfig as PluginConfig
    from ovlpt.config import PrecisionsRestriction as PrecisionsRestriction
    from ovlpt.config import QuantizationGranularityRestriction as QuantizationGranularityRestriction
    from ovlpt.config_file import load_config as load_config
    from ovlpt.device import PluginLowering as PluginLowering
    from ovlpt.device import lpt_properties as lpt_properties
    from ovlpt.device import save_model as save_model
    from ovlpt.device.execution_types import execution_types as execution_types
    from ovlpt.drop_in import compile_model as compile_model
    from ovlpt.drop_in import transform as transform
    from ovlpt.fusions import fuse as fuse
    from ovlpt.inspect.bench import bench as bench
    from ovlpt.inspect.check import check as check
    from ovlpt.inspect.compare import compare as compare
    from ovlpt.inspect.complete import complete as complete
    from ovlpt.inspect.explain import explain as explain
    from ovlpt.inspect.report import report as report
    from ovlpt.inspect.run import run as run
    from ovlpt.inspect.tune import tune as tune
    from ovlpt.inspect.verify import verify as verify
    from ovlpt.layer_transformation import LayerTransformation as LayerTransformation
    from ovlpt.layer_transformation import MoveDequantizationAfter as MoveDequantizationAfter
    from ovlpt.low_precision import LowPrecision as LowPrecision
    from ovlpt.main.kv_cache_concat import Float8Cache as Float8Cache
    from ovlpt.operations import Operation as Operation
    from ovlpt.trace import InputError as InputError
    from ovlpt.trace import Reason as Reason
    from ovlpt.trace import Trace as Trace

__version__ = VERSION

_HOMES = {
    "ovlpt.common_optimizations": ("CommonOptimizations",),
    "ovlpt.config": (
        "Params",
        "PassConfig",
        "PluginConfig",
        "PrecisionsRestriction",
        "QuantizationGranularityRestriction",
    ),
    "ovlpt.config_file": ("load_config",),
    "ovlpt.device": ("PluginLowering", "lpt_properties", "save_model"),
    "ovlpt.device.execution_types": ("execution_types",),
    "ovlpt.drop_in": ("compile_model", "transform"),
    "ovlpt.fusions": ("fuse",),
    "ovlpt.inspect.bench": ("bench",),
    "ovlpt.inspect.check": ("check",),
    "ovlpt.inspect.compare": ("compare",),
    "ovlpt.inspect.complete": ("complete",),
    "ovlpt.inspect.explain": ("explain",),
    "ovlpt.inspect.report": ("report",),
    "ovlpt.inspect.run": ("run",),
    "ovlpt.inspect.tune": ("tune",),
    "ovlpt.inspect.verify": ("verify",),
    "ovlpt.layer_transformation": ("LayerTransformation", "MoveDequantizationAfter"),
    "ovlpt.low_precision": ("LowPrecision",),
    "ovlpt.main.kv_cache_concat": ("Float8Cache",),
    "ovlpt.operations": ("Operation",),
    "ovlpt.trace": ("InputError", "Reason", "Trace"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("plugin_config", "predicates")

__all__ = sorted((*_HOME, *_MODULES))

_FOLDER = os.path.dirname(os.path.abspath(__file__))
if not os.path.isdir(os.path.join(_FOLDER, "plugin_config")):  # it lies beside this folder until the package is built
    __path__.append(os.path.dirname(_FOLDER))


def __getattr__(name: str) -> Any:
    if name in _HOME:
        globals()[name] = found = getattr(import_module(_HOME[name]), name)
        return found
    if not name.startswith("_"):
        from importlib.util import find_spec  # here, not above: seldom needed, and it takes long

        if find_spec(f"ovlpt.{name}") is not None:
            return import_module(f"ovlpt.{name}")
    raise AttributeError(f"module 'ovlpt' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
