"""OpenVINO's Low Precision Transformations in Python."""

from ovlpt import plugin_config
from ovlpt.config import (
    Params,
    PassConfig,
    PluginConfig,
    PrecisionsRestriction,
    QuantizationGranularityRestriction,
)
from ovlpt.low_precision import LowPrecision
from ovlpt.trace import Trace
