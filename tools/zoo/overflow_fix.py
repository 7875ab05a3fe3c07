"""How the weights of a network were quantized, which its file says.

On CPUs without VNNI int8 kernels add pairs of products in 16 bits, and saturate (`ovlpt.device.overflow`). Weights
within half of the range of i8 cannot: NNCF calls that the overflow fix, ONNX Runtime a reduced range.
"""

from __future__ import annotations

from pathlib import Path

from ovlpt.openvino_api import Model
from tools.ir import save_ir

_KEY = "weights"
WHOLE, HALF = "in the whole range of 8 bits", "in half of the range of 8 bits"


def save_quantized(model: Model, path: Path, overflow_fix: bool, *, compress_to_fp16: bool = False) -> None:
    """Write a quantized network together with how its weights are quantized."""
    save_ir(model, path, compress_to_fp16=compress_to_fp16, rt_info={_KEY: HALF if overflow_fix else WHOLE})


def range_of_weights(model: Model) -> str:
    """`HALF`, or `WHOLE`, where the file says nothing too."""
    return model.get_rt_info([_KEY]).astype(str) if model.has_rt_info([_KEY]) else WHOLE
