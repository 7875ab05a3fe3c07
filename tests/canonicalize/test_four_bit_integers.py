from __future__ import annotations

import numpy as np
import pytest
from openvino import Type

import ovlpt
from ovlpt.device.properties import STATIC
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT
from tests.networks import const, model, parameter, quantized

INPUTS, OUTPUTS, BLOCK = 32, 24, 8
KINDS = {"u4": (0, 16), "i4": (-8, 8)}


@pytest.fixture(params=[(True, True), (False, True), (False, False)], ids=["whole", "turned", "reshaped"])
def weights(request):
    """Makes blocks of 4-bit weights with a scale each, and their values as [inputs, outputs].

    As NNCF stores them, or as a DequantizeLinear of ONNX: blocks of inputs, which a Reshape makes of the stored integers.
    """
    transposed, in_blocks = request.param

    def make(kind: str, has_zero_point: bool):
        random, axis = np.random.default_rng(3), 2 if transposed else 1
        shape = (OUTPUTS, INPUTS // BLOCK, BLOCK) if transposed else (INPUTS // BLOCK, BLOCK, OUTPUTS)
        by_block = tuple(1 if each == axis else size for each, size in enumerate(shape))
        stored, scale = random.integers(*KINDS[kind], shape), random.uniform(0.5, 1.5, by_block).astype(np.float32)
        middle = sum(KINDS[kind]) // 2
        point = random.integers(middle - 2, middle + 3, by_block) if has_zero_point else np.zeros(by_block, int)
        node = opset1.constant(stored if in_blocks else stored.reshape(INPUTS, OUTPUTS), getattr(Type, kind))
        if not in_blocks:
            node = opset1.reshape(node, const(shape, "i64"), False)
        node = opset1.convert(node, "f32")
        if has_zero_point:
            node = opset1.subtract(node, opset1.convert(opset1.constant(point, getattr(Type, kind)), "f32"))
        flat = (OUTPUTS, INPUTS) if transposed else (INPUTS, OUTPUTS)
        node = opset1.reshape(opset1.multiply(node, const(scale)), const(flat, "i64"), False)
        values = ((stored - point) * scale).reshape(flat)
        return node, transposed, values.T if transposed else values

    return make


@pytest.mark.filterwarnings("ignore:.*compressed weights only")
@pytest.mark.parametrize("kind, has_zero_point", [("u4", True), ("i4", True), ("i4", False)])
@pytest.mark.parametrize("is_quantized", [True, False])
def test_four_bits_in_blocks(core, weights, kind, has_zero_point, is_quantized):
    """Before 2025.4 stock has them wrong, by up to 300 % of the largest: with a zero point of i4, on 2024.6 after a Reshape, too."""
    x = parameter([2, 5, INPUTS])
    factor, transposed, values = weights(kind, has_zero_point)
    net = model(opset1.matmul(quantized(x, -1.28, 1.27) if is_quantized else x, factor, False, transposed), x)
    data = np.random.default_rng(0).uniform(-1.2, 1.2, (2, 5, INPUTS)).astype(np.float32)
    check(core, net, data, (np.rint(data / 0.01) * 0.01 if is_quantized else data) @ values)


@pytest.mark.filterwarnings("ignore:.*compressed weights only")
@pytest.mark.parametrize("kind, has_zero_point", [("u4", True), ("i4", True), ("i4", False)])
def test_data_that_is_quantized_dynamically(core, weights, kind, has_zero_point):
    """By default, where the CPU has kernels for it. Those for AVX512-VNNI were off by 100 % and more before 2025.2."""
    x = parameter([2, 5, INPUTS])
    factor, transposed, values = weights(kind, has_zero_point)
    net = model(opset1.relu(opset1.matmul(x, factor, False, transposed)), x)
    data = np.random.default_rng(0).uniform(-1.2, 1.2, (2, 5, INPUTS)).astype(np.float32)
    exact, transformed = np.maximum(data @ values, 0), ovlpt.transform(net, core=core)
    for compiled in (
        ovlpt.compile_model(net, core=core, properties=EXACT),
        core.compile_model(transformed, "CPU", {**EXACT, **ovlpt.lpt_properties(transformed, "CPU")}),
    ):
        np.testing.assert_allclose(compiled([data])[0], exact, atol=2e-2 * exact.max())


def check(core, net, data, exact):
    """Without dynamic quantization of the data, which takes half a percent where the CPU has kernels for it."""
    static = {**EXACT, **STATIC}
    found = {
        "simulation": simulate(net, core)([data])[0],
        "compiled": ovlpt.compile_model(net, core=core, properties=static)([data])[0],
        "transformed": core.compile_model(ovlpt.transform(net, core=core), "CPU", static)([data])[0],
    }
    for way, result in found.items():
        np.testing.assert_allclose(result, exact, atol=5e-3 * np.abs(exact).max(), err_msg=way)
