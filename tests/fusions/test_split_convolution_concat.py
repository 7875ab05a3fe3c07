"""Split + Convolutions + Concat, and what OpenVINO's own optimizations must not break."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from openvino._offline_transformations import apply_moc_transformations

from ovlpt.fusions import SplitConvolutionConcatFusion, fuse
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.trace import Outcome, Trace
from tests.fusions import networks as net
from tests.fusions.conftest import any_sizes, difference, inputs_of
from tests.fusions.networks import Numbers, c, index, kinds, model_of, normalized, to_nchw, to_nhwc
from tests.numpy_model import run, run_on_plugin

CUTS = ("Split", "VariadicSplit", "StridedSlice", "Slice")


def pieces(x, cut: str, count: int, axis: int):
    size = x.shape[axis] // count
    if cut == "Split":
        return opset1.split(x, index(axis), count).outputs()
    if cut == "VariadicSplit":
        return opset1.variadic_split(x, index(axis), index([size] * (count - 1) + [-1])).outputs()
    ends = [(i * size, (i + 1) * size) for i in range(count)]
    if cut == "Slice":
        return [net.opset8.slice(x, *(index([v]) for v in (*end, 1, axis))).output(0) for end in ends]
    lead, mask = [0] * axis, [1] * axis + [0]
    return [
        opset1.strided_slice(x, index([*lead, b]), index([*lead, e]), index([1] * (axis + 1)), mask, mask).output(0)
        for b, e in ends
    ]


def network(
    order=(0, 1, 2, 3),
    count: int = 4,
    cut: str = "Split",
    bias: object = True,
    axis: int = 1,
    concat_axis: int = 1,
    channels_last: bool = False,
    data=lambda value, branch: value,
    weights=lambda values, branch: c(values),
    after=lambda value, branch: value,
    dilation=lambda branch: 1,
    outputs=lambda branch: 3,
    groups: int = 0,
    seed: int = 0,
) -> Model:
    numbers = Numbers(seed)
    x = net.parameter([2, 8, 8, 2 * count] if channels_last else [2, 2 * count, 8, 8])
    parts, parameters, branches = pieces(x, cut, count, axis), [x], []
    inputs = 2 if axis == (3 if channels_last else 1) else 2 * count
    for branch, at in enumerate(order):
        y = data(parts[at], branch)
        y = to_nchw(y) if channels_last else y
        made = outputs(branch)
        shape = (groups, made, inputs // groups, 3, 3) if groups else (made, inputs, 3, 3)
        w = weights(numbers.normal(*shape), branch)
        if w.get_type_name() == "Parameter":
            parameters.append(w)
        steps = [dilation(branch)] * 2
        y = (opset1.group_convolution if groups else opset1.convolution)(y, w, [1, 1], steps, steps, steps)
        channels = y.shape[1]
        if bias is True or (bias == "some" and branch % 2):
            y = opset1.add(y, c(numbers.normal(1, channels, 1, 1)))
        y = after(y, branch)
        branches.append(to_nhwc(y) if channels_last else y)
    return model_of(opset1.concat(branches, concat_axis), *parameters)


def check(model: Model) -> tuple[Model, Trace]:
    """The numbers of numpy after the fusion, after OpenVINO's common optimizations, and on the plugin."""
    inputs, trace = inputs_of(model), Trace()
    expected = run(model, inputs)[0]
    result = fuse(model, trace)
    assert difference(expected, run(result, inputs)[0]) <= 1e-6
    optimized = result.clone()
    apply_moc_transformations(optimized, False)
    assert difference(expected, run(optimized, inputs)[0]) <= 1e-5
    assert difference(expected, run_on_plugin(result, inputs)[0]) <= 1e-5
    return result, trace


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("bias", [True, False, "some"])
def test_any_cut(cut: str, bias: object) -> None:
    result, _ = check(network(cut=cut, bias=bias))
    assert kinds(result) == {"GroupConvolution": 1, **({"Add": 1} if bias else {})}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("order", [(3, 1, 0, 2), (0, 0, 1, 1), (1, 1, 1, 1), (0, 2), (0, 1, 2)])
def test_any_order_of_the_pieces(cut: str, order) -> None:
    for bias in (True, False):
        result, _ = check(network(order, cut=cut, bias=bias))
        assert kinds(result) == {"Gather": 1, "GroupConvolution": 1, **({"Add": 1} if bias else {})}


@pytest.mark.parametrize("concat_axis", [0, 2, 3, -1, -3])
def test_concat_of_another_axis(concat_axis: int) -> None:
    result, _ = check(network(concat_axis=concat_axis, bias=False))
    own = concat_axis in (1, -3)
    assert kinds(result) == {"GroupConvolution": 1} | ({} if own else {"Split": 1, "Concat": 1})


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
@pytest.mark.parametrize("concat_axis", [1, 2, 3])
def test_channels_last(order, concat_axis: int) -> None:
    result, _ = check(network(order, axis=3, concat_axis=concat_axis, channels_last=True))
    expected = {"Transpose": 2, "GroupConvolution": 1, "Add": 1}
    expected |= {} if order == (0, 1, 2, 3) else {"Gather": 1}
    assert kinds(result) == expected | ({} if concat_axis == 3 else {"Split": 1, "Concat": 1})


@any_sizes
def test_random_sizes(fused, seed: int) -> None:
    numbers = Numbers(seed)
    count, made = int(numbers.rng.integers(2, 6)), int(numbers.rng.integers(1, 5))
    order = numbers.rng.permutation(count) if seed % 2 else np.arange(count)
    groups = 2 if seed % 3 == 0 else 0
    model = network(order, count, CUTS[seed % 4], outputs=lambda branch, n=made: n, groups=groups, seed=seed)
    result, _ = fused(model)
    assert kinds(result)["GroupConvolution"] == 1
    assert kinds(result)["Concat"] == 0


def _ends(high, shape=()):
    return [c(np.full(shape, sign * high)) for sign in (-1, 1, -1, 1)]


def test_quantized_data_and_weights() -> None:
    def alike(value, branch):
        return opset1.fake_quantize(value, *_ends(1.0), 256)

    def per_channel(value, branch):
        return opset1.fake_quantize(value, *_ends(np.array([1.0, 2.0]).reshape(1, 2, 1, 1), (1, 2, 1, 1)), 256)

    def fake_quantized(values, branch):
        return opset1.fake_quantize(c(values), *_ends(2.0 + branch), 255)

    def dequantized(values, branch):
        stored = opset1.constant(np.rint(values * 30).astype(np.int8))
        return opset1.multiply(opset1.convert(stored, "f32"), c(np.full((3, 1, 1, 1), 0.01 * (branch + 1))))

    for data, weights in itertools.product((alike, per_channel), (fake_quantized, dequantized)):
        model = network(data=data, weights=weights)
        inputs = inputs_of(model)
        expected, result = run(model, inputs)[0], fuse(model)
        assert difference(expected, run(result, inputs)[0]) <= 1e-6
        assert kinds(result)["GroupConvolution"] == 1
        assert kinds(result)["FakeQuantize"] == (2 if weights is fake_quantized else 1)


def test_normalizations_in_the_branches_and_after_the_concat(fused) -> None:
    numbers = Numbers(9)
    model = network(after=lambda value, branch: normalized(value, numbers.batch_norm(3)))
    result, _ = fused(model)
    assert kinds(result) == {"GroupConvolution": 1, "Add": 1}
    model = network()
    concat = model.get_results()[0].input_value(0)
    y = normalized(concat, numbers.batch_norm(12))
    concat.get_tensor().set_names(set())
    result, trace = fused(model_of(y, *model.get_parameters()))
    assert kinds(result) == {"GroupConvolution": 1, "Add": 1}
    assert all(event.outcome is Outcome.TRANSFORMED for event in trace)


def _parameter(values, branch):
    return net.parameter(list(values.shape), f"w{branch}")


REFUSALS = [
    (
        {"data": lambda value, branch: opset1.fake_quantize(value, *_ends(1.0 + branch), 256)},
        "quantization_differs",
    ),
    (
        {"data": lambda value, branch: opset1.fake_quantize(value, *_ends(1.0), 256) if branch else value},
        "quantization_differs",
    ),
    (
        {"weights": lambda values, branch: opset1.fake_quantize(c(values), *_ends(2.0), 255 - branch)},
        "quantization_differs",
    ),
    ({"dilation": lambda branch: 1 + branch % 2}, "attributes"),
    ({"outputs": lambda branch: 3 + branch}, "weights_shapes"),
    ({"weights": _parameter}, "dynamic_weights"),
    ({"axis": 2}, "split_axis"),
]


@pytest.mark.parametrize(("arguments", "code"), REFUSALS)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_refusals_stay_right_under_other_optimizations(arguments, code: str, order) -> None:
    result, trace = check(network(order, bias=False, **arguments))
    assert kinds(result)["Convolution"] == 4
    assert kinds(result)["Concat"] == 1
    assert [event.reason.code for event in trace] == [code]


def test_convolution_with_another_reader() -> None:
    model = network()
    convolution = next(node for node in model.get_ops() if node.get_type_name() == "Convolution")
    model.add_results([opset1.result(opset1.relu(convolution))])
    trace = Trace()
    assert kinds(fuse(model, trace))["Convolution"] == 4
    assert [event.reason.code for event in trace] == ["shared"]


def test_unequal_and_foreign_pieces() -> None:
    numbers = Numbers(0)
    x = net.parameter([1, 6, 5, 5])
    parts = opset1.variadic_split(x, index(1), index([2, 4])).outputs()
    model = model_of(opset1.concat([net.convolution(p, c(numbers.normal(3, p.shape[1], 1, 1))) for p in parts], 1), x)
    assert [event.reason.code for event in check(model)[1]] == ["unequal_pieces"]
    z = net.parameter([1, 6, 5, 5], "z")
    parts = opset1.split(x, index(1), 2).output(0), opset1.split(z, index(1), 2).output(1)
    model = model_of(opset1.concat([net.convolution(p, c(numbers.normal(3, 3, 1, 1))) for p in parts], 1), x, z)
    assert [event.reason.code for event in check(model)[1]] == ["sources"]


def test_other_concats_are_not_its_business() -> None:
    """An inception block: convolutions of the whole value."""
    numbers = Numbers(0)
    x = net.parameter([1, 4, 5, 5])
    model = model_of(opset1.concat([net.convolution(x, c(numbers.normal(3, 4, 1, 1))) for _ in range(2)], 1), x)
    trace = Trace()
    assert kinds(fuse(model, trace)) == {"Convolution": 2, "Concat": 1}
    assert not trace.events


def test_alone() -> None:
    model = network()
    inputs = inputs_of(model)
    expected = run(model, inputs)[0]
    manager = Manager()
    manager.register_pass(SplitConvolutionConcatFusion())
    manager.run_passes(model)
    assert kinds(model) == {"GroupConvolution": 1, "Add": 1}
    assert difference(expected, run(model, inputs)[0]) <= 1e-6
