"""The result equals that of the native pass, driven with the same restrictions."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from ovlpt.plugin_config import arm

from ovlpt import LowPrecision, Params, PassConfig
from ovlpt.config import PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.openvino_api import RELEASE, Manager
from tests.graphs import (
    CASES,
    dequantization,
    f32,
    fake_quantize,
    integers,
    model,
    opset1,
    parameter,
    weights,
)
from tests.main.test_recurrent_cell import sequence
from tests.test_operations_on_graphs import quantized
from tools.parity.compare import compare
from tools.parity.driver import run_native, run_native_with

pytestmark = [
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="the native pass is driven by a C++ program and there is no g++"
    ),
    pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one"),
]

NOT_ON_CPU = "MultiplyToGroupConvolutionTransformation"
PRECISIONS = (
    PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]}),
    PrecisionsRestriction.create("GroupConvolution", {0: ["u8"], 1: ["i8"]}),
    PrecisionsRestriction.create("MatMul", {0: ["u8", "i8"], 1: ["i8"]}),
)
GRANULARITY = (QuantizationGranularityRestriction.create("Convolution", [0]),)
NATIVE = Params(native_only=True)
# The native pass fails on these: it leaves a constant of rank 2 behind data of rank 4.
NATIVE_FAILS = {("Broadcast rank", 1)}


def assert_native(graph, precisions=(), granularity=(), params=NATIVE) -> None:
    expected = run_native(graph, precisions, granularity, params, disabled=[NOT_ON_CPU])
    manager = Manager()
    manager.register_pass(LowPrecision(precisions, granularity, params, PassConfig({NOT_ON_CPU})))
    manager.run_passes(graph)
    result = compare(expected, graph)
    assert result.equal, f"{result.matched} / {result.total}: {result.differences}"


@pytest.mark.parametrize("update", [True, False], ids=["", "precisions_kept"])
@pytest.mark.parametrize("zero_point", [False, True], ids=["symmetric", "zero_point"])
@pytest.mark.parametrize("axis", [None, 1], ids=["per_tensor", "axis_1"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operation(case, axis, zero_point, update):
    if (case.name, axis) in NATIVE_FAILS:
        return
    assert_native(quantized(case, axis, zero_point, dynamic=False), params=Params(update, native_only=True))


SHAPE = (1, 3, 4, 4)


def qdq(data, low: str = "u8", zero_point: int | None = 128):
    """A quantization as the ONNX front end gives it."""
    ends = (0, 255) if low == "u8" else (-128, 127)
    quantize = opset1.fake_quantize(data, f32(-1.28), f32(1.27), f32(ends[0]), f32(ends[1]), 256)
    node = opset1.convert(opset1.convert(quantize, low), "f32")
    if zero_point is not None:
        stored = opset1.constant(np.array(zero_point, np.uint8 if low == "u8" else np.int8))
        node = opset1.subtract(node, opset1.convert(stored, "f32"))
    return opset1.multiply(node, f32(0.01))


def convolution(data, channels: int = 3, zero_point=None):
    kernel = weights([4, channels, 1, 1], np.linspace(0.01, 0.02, 4).reshape(4, 1, 1, 1), zero_point)
    return opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])


QDQ = {
    "u8 with a zero point": lambda: convolution(qdq(parameter(SHAPE))),
    "u8": lambda: convolution(qdq(parameter(SHAPE), zero_point=None)),
    "i8 composed to u8": lambda: convolution(qdq(parameter(SHAPE), "i8", None)),
    "i8 with a zero point": lambda: convolution(qdq(parameter(SHAPE), "i8", 5)),
    "weights with a zero point": lambda: convolution(qdq(parameter(SHAPE)), zero_point=3.0),
    "nothing quantized behind": lambda: opset1.sigmoid(qdq(parameter(SHAPE))),
    "two inputs": lambda: opset1.add(
        convolution(qdq(parameter(SHAPE))), convolution(qdq(parameter(SHAPE, "x2"), "i8", 1))
    ),
    "product of activations": lambda: opset1.matmul(
        qdq(parameter((2, 4))), qdq(parameter((4, 4), "x2"), "i8", 0), False, False
    ),
    "quantized Concat": lambda: convolution(qdq(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1)), 6),
    "Concat of quantized": lambda: convolution(
        opset1.concat([qdq(parameter(SHAPE)), qdq(parameter(SHAPE, "x2"))], 1), 6
    ),
    "integers given": lambda: convolution(dequantization(parameter(SHAPE, precision=np.uint8), 0.1, 3.0)),
    "Convert alone": lambda: opset1.convert(
        opset1.fake_quantize(parameter(SHAPE), f32(-1), f32(1), f32(0), f32(255), 256), "u8"
    ),
}


@pytest.mark.parametrize("restricted", [True, False], ids=["cpu", "unrestricted"])
@pytest.mark.parametrize("name", QDQ)
def test_quantize_dequantize(name, restricted):
    assert_native(model(QDQ[name]()), PRECISIONS if restricted else (), GRANULARITY if restricted else ())


PREREQUISITES = {
    "Concat before FakeQuantize": lambda: convolution(
        fake_quantize(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1), 0.0, 2.55), 6
    ),
    "Concat and Relu before FakeQuantize": lambda: convolution(
        fake_quantize(opset1.relu(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1)), 0.0, 2.55), 6
    ),
    "per channel behind Concat": lambda: opset1.relu(
        fake_quantize(
            opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1), np.zeros((1, 6, 1, 1)), np.linspace(1, 2, 6).reshape(1, 6, 1, 1)
        )
    ),
    "reshaped weights": lambda: opset1.matmul(
        fake_quantize(parameter((2, 4)), 0.0, 2.55),
        opset1.reshape(dequantization(integers((2, 3, 4)), np.full((1, 1, 4), 0.5)), np.array([6, 4]), False),
        False, True,
    ),
    "transposed weights": lambda: opset1.matmul(
        fake_quantize(parameter((2, 4)), 0.0, 2.55),
        opset1.transpose(dequantization(integers((5, 4)), np.linspace(1, 2, 5).reshape(5, 1)), np.array([1, 0])),
        False, False,
    ),
    "constants in sequence": lambda: opset1.multiply(
        opset1.add(opset1.add(parameter(SHAPE), f32(1.0)), f32(2.0)), f32(3.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PREREQUISITES)
def test_prerequisites(name):
    assert_native(model(PREREQUISITES[name]()), PRECISIONS, GRANULARITY)


def test_comparison_names_what_differs():
    def graph(high: float):
        return model(opset1.relu(fake_quantize(parameter(SHAPE), 0.0, high)))

    assert compare(graph(1.0), graph(1.0)).equal
    result = compare(graph(1.0), graph(2.0))
    assert result.matched == result.total - 2
    assert len(result.differences) == 2
    assert all("values differ by up to 1" in line for line in result.differences)


@pytest.mark.parametrize("quantized_weights", [True, False])
def test_recurrent_cell(quantized_weights):
    assert_native(sequence(quantized_weights=quantized_weights))


def biased(data, stride: int = 1, kernel: int = 3):
    """A convolution with a bias, quantized behind: one layer on ARM, unless it is a small one."""
    stored = weights([4, 4, kernel, kernel], np.linspace(0.01, 0.02, 4).reshape(4, 1, 1, 1))
    layer = opset1.convolution(data, stored, [stride] * 2, [kernel // 2] * 2, [kernel // 2] * 2, [1, 1])
    return opset1.add(layer, f32(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)))


def residual(shared_first: bool):
    data = fake_quantize(opset1.relu(parameter((1, 4, 8, 8))), 0.0, 2.55)
    branches = data, fake_quantize(biased(data), 0.0, 1.27)
    return opset1.relu(opset1.add(*branches if shared_first else branches[::-1]))


ARM = {
    **QDQ,
    **PREREQUISITES,
    "small convolution": lambda: biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55)),
    "strided convolutions": lambda: biased(
        fake_quantize(biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55), 2), 0.0, 2.55), 2
    ),
    "signed behind unsigned": lambda: biased(
        fake_quantize(biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55), 1, 1), -1.28, 1.27), 1, 1
    ),
    "residual, shared input first": lambda: residual(True),
    "residual, shared input second": lambda: residual(False),
}


@pytest.mark.parametrize("convolutions", [True, False], ids=["", "products_only"])
@pytest.mark.parametrize("name", ARM)
def test_arm(name, convolutions):
    graph, config = model(ARM[name]()), arm.config(convolutions)
    expected = run_native_with(config, graph)
    manager = Manager()
    manager.register_pass(LowPrecision.from_config(config, native_only=True))
    manager.run_passes(graph)
    result = compare(expected, graph)
    assert result.equal, f"{result.matched} / {result.total}: {result.differences}"
