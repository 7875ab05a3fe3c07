"""One device: lowering, compilation, and what was executed."""

from ovlpt.device.compile import compile_quantized, lpt_properties, transform
from ovlpt.device.execution_types import ExecutionTypes, LayerExecution, execution_types
from ovlpt.device.lowering import PluginLowering
from ovlpt.device.saving import save_model
from ovlpt.device.this_cpu import has_avx512, saturates

__all__ = [
    "ExecutionTypes",
    "LayerExecution",
    "PluginLowering",
    "compile_quantized",
    "execution_types",
    "has_avx512",
    "lpt_properties",
    "saturates",
    "save_model",
    "transform",
]
