"""What the plugin's own LPT leaves in float and ovlpt does not: execution types on the CPU, and the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ovlpt
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, Model, Node, opset1
from tests.conftest import EXACT, assert_close, needs_avx2
from tests.graphs import (
    NodeFactory,
    f32,
    fake_quantize,
    i64,
    interpolate,
    model,
    opset6,
    opset7,
    opset8,
    opset14,
    parameter,
)

_SHAPE = (1, 16, 16, 16)
_MASK = np.indices((16, 16)).sum(0) % 2 == 0
_PLACES = np.random.default_rng(0).integers(0, 16, (1, 16, 8, 16))


def small_weights(shape, axis: int = 0) -> Node:
    """i8 weights so small that no CPU saturates a sum of two products, with a scale per output channel."""
    generator = np.random.default_rng(0)
    stored = opset1.convert(opset1.constant(generator.integers(-63, 64, shape).astype(np.int8)), "f32")
    scale = [size if index == axis else 1 for index, size in enumerate(shape)]
    return opset1.multiply(stored, f32(generator.uniform(0.002, 0.01, scale)))


def convolution(data: Node, outputs: int = 16) -> Node:
    value = data if not isinstance(data, Node) else data.output(0)
    kernel = small_weights([outputs, value.get_partial_shape()[1].get_length(), 3, 3])
    return opset1.convolution(value, kernel, [1, 1], [1, 1], [1, 1], [1, 1])


def before_convolution(build: Callable[[Node], Node], low: float) -> Model:
    return model(convolution(build(fake_quantize(parameter(_SHAPE), low, low + 2.55))))


def pooled(data: Node) -> Node:
    return opset1.max_pool(data, [1, 1], [1, 1], [1, 1], [3, 3])


def interpolated(data: Node, mode: str, coordinates: str = "half_pixel") -> Node:
    attributes = {"mode": mode, "shape_calculation_mode": "sizes", "coordinate_transformation_mode": coordinates}
    inputs = [data, i64(32, 24), i64(2, 3)]
    return NodeFactory("opset11").create("Interpolate", [each.output(0) for each in inputs], attributes)


MOVES_DATA = {
    "GatherElements": lambda x: opset6.gather_elements(x, opset1.constant(_PLACES), 2),
    "Interpolate aligned": lambda x: interpolated(x, "nearest", "align_corners"),
    "MaxPool dilated": lambda x: opset8.max_pool(x, [1, 1], [2, 2], [0, 0], [0, 0], [3, 3]).output(0),
    "Maximum": lambda x: opset1.maximum(x, pooled(x)),
    "MaxPool ceil_torch": lambda x: opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [3, 3], "ceil_torch").output(0),
    "Minimum constant": lambda x: opset1.minimum(x, f32(1)),
    "Relu": opset1.relu,
    "Roll": lambda x: opset7.roll(x, i64(1, 2), i64(2, 3)),
    "Select": lambda x: opset1.select(opset1.constant(_MASK), x, pooled(x)),
    "Select zero": lambda x: opset1.select(opset1.constant(_MASK), x, f32(0)),
    "Tile": lambda x: opset1.tile(x, i64(1, 1, 2, 1)),
}


def kernels(compiled, layer: str) -> list[bool]:
    """Of each executed layer of a type, or the convolution that a product became: whether it ran in int8."""
    types = ("FullyConnected", "Convolution") if layer == "FullyConnected" else (layer,)
    return [each.is_int8 for each in ovlpt.execution_types(compiled).executed if each.layer_type in types]


def check(
    graph: Model, core, infer, layer: str = "Convolution", count: int = 1, off: float = 0, spread: float = 1
) -> None:
    """Stock runs all layers of the type but one in int8, ovlpt all, with the numbers of the graph without LPT."""
    stock = core.compile_model(graph, "CPU", EXACT)
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    native = ovlpt.compile_model(graph, core=core, properties=EXACT, native_only=True)
    assert sum(kernels(stock, layer)) == sum(kernels(native, layer)) < count
    assert kernels(compiled, layer) == [True] * count
    inputs = [
        np.random.default_rng(1).uniform(-1.2, 2.7, port.shape).astype(np.float32) * np.float32(spread)
        for port in graph.inputs
    ]
    assert_close(list(compiled(inputs).values()), infer(graph, inputs), off, share=0.02 if off else 0)


NATIVE_KNOWS = {("Relu", 0.0)}


@pytest.mark.parametrize(
    "name, low", sorted({(name, low) for name in MOVES_DATA for low in (0.0, -1.0)} - NATIVE_KNOWS)
)
def test_a_convolution_after_what_moves_data(core, infer, name, low):
    """Over an interval from ``low``, with a zero point where that is not 0."""
    check(before_convolution(MOVES_DATA[name], low), core, infer)


def test_a_grouped_transposed_convolution(core, infer):
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    graph = model(opset1.group_convolution_backprop_data(data, small_weights([4, 4, 4, 3, 3], 2), [2, 2]))
    check(graph, core, infer, "Deconvolution")


def test_an_average_that_rounds_its_size_as_pytorch(core, infer):
    """Over nine values each, whose mean is never half a level."""
    data = fake_quantize(parameter((1, 16, 17, 17)), 0.0, 2.55)
    pool = opset14.avg_pool(data, [2, 2], [0, 0], [0, 0], [3, 3], True, "ceil_torch")
    check(model(convolution(fake_quantize(pool, 0.0, 2.55))), core, infer, "Pooling")


@pytest.mark.parametrize("levels", [15, 127])
def test_weights_of_other_levels(core, infer, levels):
    values = f32(np.random.default_rng(0).uniform(-1, 1, (16, 16, 3, 3)))
    weights = opset1.fake_quantize(values, f32(-1), f32(1), f32(-1), f32(1), levels)
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    check(model(opset1.convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1])), core, infer)


def unsigned_weights(shape) -> Node:
    """Around the zero point 128, as uint8 models have them."""
    stored = opset1.constant(np.random.default_rng(0).integers(65, 192, shape).astype(np.uint8))
    zero_point = opset1.convert(opset1.constant(np.uint8(128)), "f32")
    return opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), zero_point), f32(0.01))


def test_unsigned_weights(core, infer):
    data = fake_quantize(parameter(_SHAPE), 0.0, 2.55)
    weights = unsigned_weights((16, 16, 3, 3))
    check(model(opset1.convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1])), core, infer)


def test_unsigned_weights_of_a_product(core, infer):
    data = fake_quantize(parameter((8, 64)), 0.0, 2.55)
    check(model(opset1.matmul(data, unsigned_weights((32, 64)), False, True)), core, infer, "FullyConnected")


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="this release has no type-relaxed Interpolate of opset4")
@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic"])
@pytest.mark.parametrize("low", [0.0, -1.0], ids=["symmetric", "zero_point"])
def test_an_interpolation_between_values(core, infer, mode, low):
    """One level may be off where a mean lies between two."""
    data = interpolated(fake_quantize(parameter(_SHAPE), low, low + 2.55), mode)
    check(model(fake_quantize(data, low, low + 2.55)), core, infer, "Interpolate", off=0.0101)


@pytest.mark.parametrize("opset", [4, 11])
@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic"])
@pytest.mark.parametrize("low", [0.0, -1.28, -1.0], ids=["u8", "i8", "zero_point"])
def test_an_interpolation_that_nothing_quantizes_after(core, infer, mode, low, opset):
    """It runs in float, as with the plugin's own LPT: kernels give integers for integers, and would round the means."""
    data = opset1.relu(convolution(fake_quantize(parameter(_SHAPE), 0.0, 2.55)))
    resized = interpolated(fake_quantize(data, low, low + 2.55), mode)
    if opset == 4:
        resized = interpolate(fake_quantize(data, low, low + 2.55), mode=mode)
    graph = model(opset1.relu(convolution(resized)))
    inputs = [np.random.default_rng(1).uniform(-1.2, 2.7, _SHAPE).astype(np.float32)]
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    stock = core.compile_model(graph, "CPU", EXACT)
    assert len(ovlpt.execution_types(compiled).executed) <= len(ovlpt.execution_types(stock).executed)
    assert kernels(compiled, "Interpolate") == [False]
    assert_close(list(compiled(inputs).values()), infer(graph, inputs))


@needs_avx2
def test_a_depthwise_convolution_after_tokens(core, infer):
    """Scales per channel on the last axis, which a Transpose and a Reshape bring before a depthwise convolution."""
    high = np.linspace(1, 2.55, 16, dtype=np.float32).reshape(1, 1, 16)
    image = opset1.transpose(fake_quantize(parameter((1, 64, 16)), 0 * high, high), i64(0, 2, 1))
    image = opset1.reshape(image, i64(0, 16, 8, 8), True)
    graph = model(opset1.group_convolution(image, small_weights([16, 1, 1, 3, 3]), [1, 1], [1, 1], [1, 1], [1, 1]))
    check(graph, core, infer)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_data_with_zero_points(core, infer, transposed):
    """Over values so near to zero that no CPU saturates a sum of two products."""
    shape = (2, 24, 128) if transposed else (2, 128, 24)
    one, other = parameter((2, 32, 128), "a"), parameter(shape, "b")
    graph = model(opset1.matmul(fake_quantize(one, -1, 1.55), fake_quantize(other, -1, 1.55), False, transposed))
    check(graph, core, infer, "MatMul", spread=0.3)


def outputs(compiled) -> list[str]:
    """The precisions that the convolutions write."""
    layers = ovlpt.execution_types(compiled).executed
    return [layer.output_precision for layer in layers if layer.layer_type == "Convolution"]


def test_a_bias_that_two_convolutions_share(core, infer):
    """A shared one keeps the plugin from fusing it."""
    bias = f32(np.random.default_rng(0).standard_normal((1, 16, 1, 1)))
    hidden = opset1.add(convolution(fake_quantize(parameter(_SHAPE), 0.0, 2.55)), bias)
    graph = model(opset1.add(convolution(fake_quantize(hidden, -1.0, 4.0)), bias))
    compiled = ovlpt.compile_model(graph, core=core, properties=EXACT)
    assert outputs(core.compile_model(graph, "CPU", EXACT)) == ["f32", "f32"]
    assert outputs(compiled) == ["u8", "f32"]
    inputs = [np.random.default_rng(1).uniform(-1, 3, _SHAPE).astype(np.float32)]
    assert_close(list(compiled(inputs).values()), infer(graph, inputs), level=0.2, share=0.05)


@pytest.mark.parametrize(
    "interval",
    [(-1.27, 1.27, 255), (0.0, 1.5, 16), (0.0, 0.7, 15)],
    ids=["signed", "16 levels", "15 levels"],
)
def test_a_convolution_of_tensors_of_different_levels(core, infer, interval):
    """On one grid, so that one scale serves them all."""
    branches = [fake_quantize(parameter(_SHAPE, "a"), 0.0, 2.55), fake_quantize(parameter(_SHAPE, "b"), *interval)]
    check(model(convolution(opset1.concat(branches, 1))), core, infer)


def test_a_convolution_after_a_leaky_relu_of_unsigned_data(core, infer):
    """It does nothing there."""
    check(before_convolution(lambda x: opset1.prelu(pooled(x), f32([0.1])), 0.0), core, infer)
