"""BatchNormInference, alone and with Mul and Add, into operations with weights."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.fusions import (
    BatchNormAddFusion,
    BatchNormMultiplyFusion,
    ConvolutionBatchNormFusion,
    QuantizationFusions,
    fuse,
)
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.trace import Outcome, Trace
from tests.fusions import networks as net
from tests.fusions.conftest import any_sizes, difference, inputs_of
from tests.fusions.networks import Numbers, c, index, kinds, model_of, normalized, to_nchw, to_nhwc, weighted
from tests.numpy_model import run


def largest(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.abs(values).max(tuple(axis for axis in range(values.ndim) if axis not in axes), keepdims=True)


def fake_quantized(values, axes):
    ends = (c(sign * largest(values, axes)) for sign in (-1, 1, -1, 1))
    return opset1.fake_quantize(c(values), *ends, 255)


def dequantized(values, axes):
    scale = largest(values, axes) / 127
    stored = opset1.constant(np.rint(values / scale).astype(np.int8))
    return opset1.multiply(opset1.convert(stored, "f32"), c(scale))


def dequantized_with_zero_point(values, axes):
    scale = largest(values, axes) / 127
    stored = opset1.constant((np.rint(values / scale) + 128).astype(np.uint8))
    return opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), c(np.full(scale.shape, 128))), c(scale))


def without_scale(values, axes):
    return opset1.convert(opset1.constant(np.rint(values * 8).astype(np.int8)), "f32")


def compressed(values, axes):
    return opset1.convert(opset1.constant(values.astype(np.float16)), "f32")


def reshaped(values, axes):
    return opset1.reshape(fake_quantized(values[None], tuple(axis + 1 for axis in axes)), index(values.shape), False)


def transposed(values, axes):
    order = list(range(values.ndim))[::-1]
    return opset1.transpose(c(np.transpose(values, order)), index(order))


WEIGHTS = (
    fake_quantized,
    dequantized,
    dequantized_with_zero_point,
    without_scale,
    compressed,
    reshaped,
    transposed,
)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", net.WEIGHTED)
@any_sizes
def test_any_weighted_operation(kind: str, dims: int, fused, seed: int) -> None:
    numbers = Numbers(seed)
    x, y, channels = weighted(kind, numbers, dims)
    model, _ = fused(model_of(normalized(y, numbers.batch_norm(channels)), x), plugin=seed % 6 == 0)
    assert kinds(model) == {y.get_type_name(): 1, "Add": 1}


@pytest.mark.parametrize("wrap", WEIGHTS)
@pytest.mark.parametrize("kind", net.WEIGHTED)
def test_factor_goes_where_the_weights_have_a_place_for_it(kind: str, wrap, fused) -> None:
    for seed in range(3):
        numbers = Numbers(seed)
        x, y, channels = weighted(kind, numbers, wrap=wrap)
        before = model_of(normalized(y, numbers.batch_norm(channels)), x)
        expected = kinds(before)
        del expected["BatchNormInference"]
        expected["Add"] += 1
        if wrap is without_scale:
            expected["Multiply"] += 1
        if wrap is compressed:
            del expected["Convert"]
        model, _ = fused(before, tolerance=1e-6)
        assert kinds(model) == expected


@pytest.mark.parametrize("bias_shape", ["channels", "scalar"])
@pytest.mark.parametrize("kind", net.WEIGHTED)
def test_bias_before_the_normalization(kind: str, bias_shape: str, fused) -> None:
    numbers = Numbers(3)
    x, y, channels = weighted(kind, numbers)
    rank, axis = (2, 1) if "matmul" in kind else (4, 1)
    bias = net.on_axis(numbers.normal(channels), rank, axis) if bias_shape == "channels" else numbers.normal()
    y = opset1.add(y, c(bias))
    model, _ = fused(model_of(normalized(y, numbers.batch_norm(channels)), x))
    assert kinds(model)["Add"] == 1
    assert "BatchNormInference" not in kinds(model)


@pytest.mark.parametrize("order", ["ma", "am", "m", "a", "mam", "aamm", "sd", "dsma"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_multiply_and_add_in_any_order_and_number(order: str, layout: str, fused) -> None:
    """After an activation the normalization stays one; after a convolution nothing stays."""
    operations = {"m": opset1.multiply, "a": opset1.add, "s": opset1.subtract, "d": opset1.divide}
    for after_convolution in (True, False):
        numbers = Numbers(5)
        x, y, channels = weighted("conv", numbers)
        if not after_convolution:
            y = opset1.relu(y)
        y = normalized(y, numbers.batch_norm(channels))
        if layout == "NHWC":
            y = to_nhwc(y)
        for letter in order:
            values = numbers.signed(channels)
            y = operations[letter](y, c(values if layout == "NHWC" else net.on_axis(values, 4, 1)))
        model, _ = fused(model_of(y, x))
        expected = {"Convolution": 1, **({"Transpose": 1} if layout == "NHWC" else {})}
        expected |= {"Add": 1} if after_convolution else {"Relu": 1, "BatchNormInference": 1}
        assert kinds(model) == expected


@pytest.mark.parametrize("bias", [False, True])
def test_channels_last_as_tensorflow_leaves_it(bias: bool, fused) -> None:
    """Each operation between its own Transposes, biases and factors with the channels last."""
    numbers = Numbers(8)
    x = net.parameter([1, 8, 8, 6])
    y = to_nhwc(net.convolution(to_nchw(x), c(numbers.normal(4, 6, 3, 3)), pad=1))
    if bias:
        y = opset1.add(y, c(numbers.normal(4)))
    y = to_nhwc(normalized(to_nchw(y), numbers.batch_norm(4)))
    y = opset1.add(opset1.multiply(y, c(numbers.signed(4))), c(numbers.normal(4)))
    model, _ = fused(model_of(y, x), plugin=True)
    assert kinds(model) == {"Convolution": 1, "Add": 1, "Transpose": 2}


def test_matmul_with_channels_after_other_dimensions(fused) -> None:
    numbers = Numbers(4)
    x = net.parameter([2, 5, 6])
    y = opset1.matmul(x, c(numbers.normal(6, 8)), False, False)
    y = to_nhwc(normalized(to_nchw(y, 3), numbers.batch_norm(8)), 3)
    model, _ = fused(model_of(y, x), plugin=True)
    assert kinds(model) == {"MatMul": 1, "Add": 1}


def test_normalizations_one_after_the_other(fused) -> None:
    numbers = Numbers(6)
    x, y, channels = weighted("conv", numbers)
    for _ in range(3):
        y = normalized(y, numbers.batch_norm(channels))
    model, _ = fused(model_of(y, x))
    assert kinds(model) == {"Convolution": 1, "Add": 1}


def _refused(model: Model, transformation: str) -> set[str]:
    trace = Trace()
    before = kinds(model)
    result = fuse(model, trace)
    assert kinds(result) == before
    inputs = inputs_of(model)
    for one, two in zip(run(model, inputs), run(result, inputs), strict=True):
        assert difference(one, two) == 0
    return {e.reason.code for e in trace if e.transformation == transformation and e.outcome is Outcome.REJECTED}


def test_refusals_of_the_convolution() -> None:
    numbers = Numbers(1)

    def network(change) -> Model:
        x, y, channels = weighted("conv", numbers)
        return change(x, y, channels)

    def two_readers(x, y, channels):
        z = normalized(y, numbers.batch_norm(channels))
        return Model([opset1.result(z), opset1.result(opset1.relu(y))], [x], "two readers")

    def after_relu(x, y, channels):
        return model_of(normalized(opset1.relu(y), numbers.batch_norm(channels)), x)

    def full_bias(x, y, channels):
        shape = list(y.shape)
        shape[0] = 1
        return model_of(normalized(opset1.add(y, c(numbers.normal(*shape))), numbers.batch_norm(channels)), x)

    def negative_variance(x, y, channels):
        parameters = numbers.batch_norm(channels) | {"variance": -np.ones(channels, np.float32)}
        model = model_of(normalized(y, parameters), x)
        return model

    for change, code in (
        (two_readers, "shared"),
        (after_relu, "no_weights"),
        (full_bias, "not_per_channel"),
    ):
        assert _refused(network(change), "ConvolutionBatchNormFusion") == {code}
    trace = Trace()
    assert kinds(fuse(network(negative_variance), trace))["BatchNormInference"] == 1
    assert [event.reason.code for event in trace] == ["not_finite"]


def test_weights_from_data_are_refused() -> None:
    numbers = Numbers(1)
    x, w = net.parameter([1, 3, 6, 6]), net.parameter([4, 3, 3, 3], "w")
    model = model_of(normalized(net.convolution(x, w), numbers.batch_norm(4)), x, w)
    assert _refused(model, "ConvolutionBatchNormFusion") == {"no_weights"}


def test_channel_shuffle_between_is_refused() -> None:
    """A Transpose that takes the channels to another axis than the normalization's."""
    numbers = Numbers(1)
    x = net.parameter([1, 4, 4, 4])
    y = opset1.transpose(net.convolution(x, c(numbers.normal(4, 4, 1, 1))), index([0, 2, 1, 3]))
    assert _refused(model_of(normalized(y, numbers.batch_norm(4)), x), "ConvolutionBatchNormFusion") == {"other_axis"}


@pytest.mark.parametrize("kind", [ConvolutionBatchNormFusion, BatchNormMultiplyFusion, BatchNormAddFusion])
def test_each_pass_alone(kind) -> None:
    numbers = Numbers(2)
    x, y, channels = weighted("conv", numbers)
    y = normalized(y, numbers.batch_norm(channels))
    operation = {BatchNormMultiplyFusion: opset1.multiply, BatchNormAddFusion: opset1.add}.get(kind)
    if operation is not None:
        y = operation(y, c(net.on_axis(numbers.signed(channels), 4, 1)))
    model = model_of(y, x)
    inputs = inputs_of(model)
    expected, before = run(model, inputs)[0], kinds(model)
    manager = Manager()
    manager.register_pass(kind())
    manager.run_passes(model)
    assert sum(kinds(model).values()) == sum(before.values()) - (operation is not None)
    assert difference(expected, run(model, inputs)[0]) <= 1e-6


def test_model_pass_in_a_manager_and_old_operation_version() -> None:
    """BatchNormInference-1 has its data third."""
    numbers = Numbers(2)
    x, y, channels = weighted("conv", numbers)
    model = model_of(normalized(y, numbers.batch_norm(channels), operations=opset1), x)
    assert {n.get_type_info().version_id for n in model.get_ops() if n.get_type_name() == "BatchNormInference"} == {
        "opset1"
    }
    inputs = inputs_of(model)
    expected = run(model, inputs)[0]
    manager = Manager()
    manager.register_pass(QuantizationFusions())
    manager.run_passes(model)
    assert kinds(model) == {"Convolution": 1, "Add": 1}
    assert difference(expected, run(model, inputs)[0]) <= 1e-6


def test_callers_model_stays_and_names_of_changed_values_go() -> None:
    numbers = Numbers(2)
    x, y, channels = weighted("conv", numbers)
    y.output(0).get_tensor().set_names({"conv:0"})
    model = model_of(normalized(y, numbers.batch_norm(channels)), x)
    before = kinds(model)
    result = fuse(model)
    assert kinds(model) == before
    names = [
        {n for node in m.get_ops() for value in node.outputs() for n in value.get_names()} for m in (model, result)
    ]
    assert names[0] - names[1] == {"conv:0"}
    assert "y:0" in names[1]
    assert result.get_results()[0].input_value(0).get_node().get_friendly_name() == "y"
