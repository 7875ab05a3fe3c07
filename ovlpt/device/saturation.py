"""Whether a device keeps sums of two eight-bit products in 16 bits."""

from __future__ import annotations

import functools

import numpy as np

from ovlpt.device.compile import LPT_OFF
from ovlpt.graph.constants import constant
from ovlpt.graph.relaxed import relaxed
from ovlpt.openvino_api import Core, Model, Type, opset1


def saturates(core: Core, device: str = "CPU") -> bool:
    """Whether int8 layers on ``device`` can saturate: true of x86 CPUs without VNNI, found by running a MatMul.

    False for every other device than "CPU". `ovlpt.reference.saturation` has the arithmetic.
    """
    return device == "CPU" and _loses_something(core)


@functools.lru_cache(maxsize=1)
def _loses_something(core: Core) -> bool:
    data = opset1.parameter([16, 16], Type.u8)
    weights = constant(np.full((16, 16), 127), "i8")
    product = relaxed("MatMul", [data.output(0), weights.output(0)], "f32", {"transpose_a": False, "transpose_b": True})
    model = Model([opset1.result(product)], [data], "saturation")
    answer = core.compile_model(model, "CPU", LPT_OFF["CPU"])([np.full((16, 16), 255, np.uint8)])[0]
    return bool((answer < 16 * 255 * 127).any())
