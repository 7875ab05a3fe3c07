"""What a layer stores for several elementwise operations: integers, also where floats are bf16."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import execution_types
from ovlpt.graph.constants import values_of
from ovlpt.openvino_api import NodeFactory, opset1, opset8
from tests.conftest import TRUTH, assert_close, needs_avx2
from tests.lowered import FORMS, compiled_in, drop_in, weighted
from tests.networks import NUMPY, const, convolution, int8_weights, model, parameter, quantized

RESULT_IN_BF16 = 53  # dB, where nothing else is rounded to that


def gated(shape, low: float, gate: str = "Sigmoid", kind: str = "Convolution"):
    """The result of a layer times a function of it, each quantized, before another layer. -2.8 is a whole number of steps."""

    def layer(data):
        if kind == "Convolution":
            return convolution(data, 8, bias=True)
        return opset1.add(opset1.matmul(data, int8_weights([8, 8]), False, True), const(np.linspace(-1, 1, 8)))

    x = parameter(shape)
    stored = quantized(layer(quantized(x, -1, 1.5)), low, 4)
    line = [const(0.2), const(0.5)] if gate == "HardSigmoid" else []
    part = NodeFactory("opset4").create(gate, [each.output(0) for each in (stored, *line)])
    return model(layer(quantized(opset1.multiply(stored, quantized(part, 0, 1)), -0.3, 4)), x)


def samples(shape):
    return [np.random.default_rng(seed).uniform(-1, 1.5, shape).astype(np.float32) for seed in range(4)]


def decibels(compiled, expected, data) -> float:
    """Of the distance between a compiled model and another one."""
    found, true = (np.concatenate([each(value.copy())[0].ravel() for value in data]) for each in (compiled, expected))
    return 10 * np.log10((true**2).sum() / max(((true - found) ** 2).sum(), 1e-30))


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("low", [-3, 0])
@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
def test_what_a_sigmoid_and_its_product_read(core, tmp_path, form, precision, low, open_sizes, kind):
    """It was stored in floats; in bf16 a level was hit or missed by the rounding of its value."""
    sizes = [1, 8, 9, 9] if kind == "Convolution" else [1, 9, 8]
    net = gated([-1, 8, -1, -1] if open_sizes and kind == "Convolution" else sizes, low, kind=kind)
    data, hint = samples(sizes), {"INFERENCE_PRECISION_HINT": precision}
    fixed = net.clone()
    fixed.reshape(sizes)
    truth = core.compile_model(fixed, "CPU", TRUTH)
    compiled, stock = compiled_in(form, net, core, tmp_path, **hint), core.compile_model(net, "CPU", hint)
    first, _ = weighted(execution_types(compiled, [data[0].copy()]))
    assert first.output_precision == "u8"
    assert decibels(compiled, truth, data) > min(RESULT_IN_BF16, decibels(stock, truth, data)) - 1


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_a_hard_sigmoid_is_computed_with_what_stands_around_it(core, tmp_path, form, precision, open_sizes):
    """It was a layer of its own, between two Reorders where floats are bf16, and read bf16."""
    net = gated([-1, 8, -1, -1] if open_sizes else [1, 8, 9, 9], -2.8, "HardSigmoid")
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=precision)
    layers = execution_types(compiled, [samples([1, 8, 9, 9])[0]])
    assert not {"Math", "HardSigmoid"} & {layer.layer_type for layer in layers}
    assert weighted(layers)[0].output_precision == "u8"


@pytest.mark.parametrize("gate", ["HardSigmoid", "HSwish", "Sigmoid", "Tanh"])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_a_quantized_factor_is_stored_as_integers(core, gate, open_sizes):
    """It was stored in real numbers, of which bf16 lost a part of each level; integers it holds."""
    net = gated([-1, 8, -1, -1] if open_sizes else [1, 8, 9, 9], -2.8, gate)
    transformed = ovlpt.transform(net, core=core, serializable=False)
    products = [node for node in transformed.get_ops() if node.get_type_name() == "Multiply"]
    factors = [value.get_node() for node in products for value in node.input_values()]
    (factor,) = (node for node in factors if node.get_type_name() == "FakeQuantize")
    assert [values_of(end.get_node()).item() for end in factor.input_values()[3:]] == [0, 255]
    data = samples([1, 8, 9, 9])
    truth, compiled = (core.compile_model(each, "CPU", TRUTH) for each in (net, transformed))
    assert decibels(compiled, truth, data) > 50  # a tie on the other side is 54 dB away


def test_a_product_with_a_quantized_factor_is_called_as_it_was(core):
    x = parameter([1, 8, 4, 4])
    product = opset1.multiply(opset1.tanh(x), quantized(opset1.sigmoid(x), 0, 1))
    (output,) = ovlpt.compile_model(model(product, x), "CPU", core=core).outputs
    assert output.get_names() == {"y0"}


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("factor", [0.37, np.linspace(-1, 1.5, 16)], ids=["scalar", "columns"])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_a_factor_between_two_quantizations_reads_integers(core, tmp_path, form, precision, factor, open_sizes):
    """A window before a Fourier transform: the integers were converted by a layer of their own."""
    x = parameter([-1, 8] if open_sizes else [3, 8])
    both = opset1.concat([quantized(x, -1.28, 1.27), quantized(opset1.relu(x), -1.28, 1.27)], 1)
    net = model(opset1.tanh(quantized(opset1.multiply(both, const(factor)), -0.64, 0.635)), x)
    data = samples([3, 8])
    truth = core.compile_model(net, "CPU", TRUTH)
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=precision)
    assert "Convert" not in {layer.layer_type for layer in execution_types(compiled, [data[0].copy()])}
    assert decibels(compiled, truth, data) > 40


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", [lambda data: data, lambda data: quantized(data, -2, 2.2)], ids=["output", "quantized"])
@pytest.mark.parametrize(
    "factor", [[0.7], np.linspace(0.4, 1.8, 8), [[[1]], [[2]]]], ids=["scalar", "columns", "channels"]
)
def test_a_factor_after_data_that_are_quantized_twice(core, tmp_path, form, factor, end):
    """The plugin made the integers of the first the type of the second and its factor together."""
    x = parameter([1, 2, 5, 8])
    net = model(
        end(opset1.multiply(quantized(quantized(x, -2.2, 2.1), -1.28, 1.27), const(np.array(factor, ndmin=4)))), x
    )
    data = samples([1, 2, 5, 8])
    truth = core.compile_model(net, "CPU", TRUTH)
    assert decibels(compiled_in(form, net, core, tmp_path, **TRUTH), truth, data) > 40


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", [lambda data: data, lambda data: quantized(data, -1, 1.2)], ids=["output", "quantized"])
@pytest.mark.parametrize("first", [(-2.2, 2.1), (0, 2.9)])
@pytest.mark.parametrize("second", [(-1.28, 1.27), (0, 2.55), (-1, 2)])
def test_a_product_of_halves_that_are_quantized_twice(core, tmp_path, form, second, first, end):
    """One half was converted to the integers of the other."""
    x = parameter([1, 4, 5, 8])
    halves = opset1.split(quantized(x, *first), const(1, "i64"), 2).outputs()
    net = model(end(opset1.multiply(*(quantized(half, *second) for half in halves))), x)
    data = samples([1, 4, 5, 8])
    truth, compiled = core.compile_model(net, "CPU", TRUTH), compiled_in(form, net, core, tmp_path, **TRUTH)
    assert compiled.output(0).get_element_type().get_type_name() == "f32"
    assert decibels(compiled, truth, data) > 40


@pytest.mark.parametrize("gate", ["SoftPlus", "Mish"])
def test_what_a_layer_of_its_own_reads_is_stored_in_floats(core, gate):
    """A dequantization before it would be a layer more."""
    net = gated([1, 8, 9, 9], -3, gate)
    transformed = ovlpt.transform(net, core=core, serializable=False)
    (part,) = (node for node in transformed.get_ops() if node.get_type_name() == gate)
    assert part.input_value(0).get_node().get_type_name() == "FakeQuantize"


def _sizes(*values):
    return const(list(values), "i64")


IDLE = {
    "Broadcast": lambda data: opset1.broadcast(data, _sizes(2, 4, 4, 4)),
    "Concat": lambda data: opset1.concat([data], 1),
    "Gather": lambda data: opset8.gather(data, _sizes(0, 1, 2, 3), const(1, "i64")),
    "Reshape": lambda data: opset1.reshape(data, _sizes(0, 0, 0, 0), True),
    "Reshapes": lambda data: opset1.reshape(opset1.reshape(data, _sizes(8, 16), False), _sizes(2, 4, 4, 4), False),
    "Slice": lambda data: opset8.slice(data, _sizes(0), _sizes(100), _sizes(1), _sizes(1)),
    "Split": lambda data: opset1.split(data, const(1, "i64"), 1),
    "Squeeze": lambda data: opset1.squeeze(data, _sizes(1)),
    "StridedSlice": lambda data: opset1.strided_slice(data, *[_sizes(0, 0)] * 2, _sizes(1, 1), [1, 1], [1, 1]),
    "Tile": lambda data: opset1.tile(data, _sizes(1, 1, 1, 1)),
    "Transposes": lambda data: opset1.transpose(opset1.transpose(data, _sizes(0, 2, 3, 1)), _sizes(0, 3, 1, 2)),
    "Unsqueeze": lambda data: opset1.squeeze(opset1.unsqueeze(data, _sizes(2)), _sizes(2)),
    "VariadicSplit": lambda data: opset1.variadic_split(data, const(1, "i64"), _sizes(4)),
}


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("idle", IDLE)
def test_integers_that_pass_what_does_nothing(core, infer, idle, how):
    """The plugin drops it, and in a pipeline without common optimizations made the scale after it a part of the
    quantization, whose real values were then cut to integers.
    """
    x = parameter([2, 4, 4, 4])
    net = model([IDLE[idle](quantized(x, 0, 2.55)), opset1.relu(x)], x)
    inputs = [np.random.default_rng(0).uniform(-1, 3, (2, 4, 4, 4)).astype(np.float32)]
    assert_close(infer(how(net, core=core), inputs), infer(net, inputs, "NO"))


def as_many_layers_as_stock(core, tmp_path, form, net, data, precision):
    """And numbers that are as near to the simulation's."""
    hint = {"INFERENCE_PRECISION_HINT": precision}
    truth, stock = core.compile_model(net, "CPU", TRUTH), core.compile_model(net, "CPU", hint)
    compiled = compiled_in(form, net, core, tmp_path, **hint)
    executed = [execution_types(each, [data[0].copy()]).executed for each in (compiled, stock)]
    assert len(executed[0]) <= len(executed[1])
    assert decibels(compiled, truth, data) > min(RESULT_IN_BF16, decibels(stock, truth, data)) - 1


def product(data):
    """A layer in float, in bf16 where floats are."""
    weights = const(np.random.default_rng(0).standard_normal((8, 8)))
    return opset1.matmul(data, weights, False, False)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("low", [-1.28, 0], ids=["i8", "u8"])
@pytest.mark.parametrize("reader", ["Concat", "Sqrt", "MatMul"])
def test_a_scale_of_open_sizes_reads_integers(core, tmp_path, form, precision, low, reader):
    """A Convert before it was a layer of its own where floats are bf16."""
    x = parameter([-1, 4, 8])
    rows = opset1.reshape(quantized(product(x), low, low + 2.55), const([-1, 8], "i64"), False)
    if reader == "Concat":
        rows = opset1.concat([rows, opset1.tanh(rows)], 0)
    elif reader == "Sqrt":
        rows = opset1.sqrt(opset1.abs(rows))
    as_many_layers_as_stock(core, tmp_path, form, model(product(rows), x), samples([3, 4, 8]), precision)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [(1, 6, 8), (1, 6, 1), (1, 1, 8), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("low, high", [(-2, 2.2), (-1.28, 1.27)])
def test_factors_of_integers_with_a_zero_point(core, tmp_path, form, precision, shape, low, high):
    """Tensors, as the sines and cosines of a Fourier transform: the zero point was stored as floats."""
    x = parameter([-1, 6, 8])
    stored, rng = quantized(product(x), -3, 3.1), np.random.default_rng(0)
    parts = [quantized(opset1.multiply(stored, const(rng.uniform(-1, 1, shape))), low, high) for _ in range(2)]
    net = model(product(quantized(opset1.add(*parts), low, high)), x)
    as_many_layers_as_stock(core, tmp_path, form, net, samples([3, 6, 8]), precision)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("sizes", [(3, 6), (1, 1)], ids=str)
@pytest.mark.parametrize("axis", [1, 2])
def test_zero_points_by_channel_of_joined_integers(core, tmp_path, form, precision, sizes, axis):
    """The zero point was two layers where floats are bf16."""
    x = parameter([-1, 6, 8] if axis == 1 else [-1, -1, 8])
    parts = [quantized(product(x), -3, 3.1), quantized(opset1.tanh(product(x)), -0.9, 1)]
    joined = opset1.concat(parts, axis)
    rows = opset1.reshape(quantized(opset1.tanh(joined), -1, 0.9), const([0, -1, 8], "i64"), True)
    net = model(product(rows), x)
    shape = [sizes[0], 6 if axis == 1 else sizes[1], 8]
    as_many_layers_as_stock(core, tmp_path, form, net, samples(shape), precision)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(3, 6), (1, 1)], ids=str)
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_zero_points_and_scales_by_channel_before_an_interval(core, by_form, form, sizes, joined, moved):
    """The interval took the first channel's scale for all the others."""
    x = parameter([-1, 8, -1])
    factor = const(np.linspace(0.5, 2, 8).reshape(1, 8, 1))
    if joined:
        halves = opset1.split(x, const(1, "i64"), 2).outputs()
        parts = [opset1.concat([quantized(each, -1, end) for each, end in zip(halves, (1.1, 2), strict=True)], 1)]
    else:
        stored = quantized(x, -1, 1.1)
        parts = [opset1.multiply(stored, factor), opset1.multiply(opset1.negative(stored), factor)]
    order = const([0, 2, 1] if moved else [0, 1, 2], "i64")
    net = model([quantized(opset1.transpose(each, order), -1.5, 2.5) for each in parts], x)
    inputs = [samples([sizes[0], 8, sizes[1]])[0]]
    fixed = net.clone()
    fixed.reshape(inputs[0].shape)
    assert_close([by_form(net, inputs, form)], [by_form(fixed, inputs)], level=4.01 / 255, share=0.15)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [3, 1])
@pytest.mark.parametrize("precision", ["i8", "u8"])
@pytest.mark.parametrize("floats", ["f32", "bf16"])
def test_given_integers_less_a_stored_zero_point(core, tmp_path, form, sizes, precision, floats):
    """The Convert was a layer of its own, unless the model was saved; in bf16 it was then as well."""
    x = parameter([-1, 4, 8], precision)
    zero_point = opset1.convert(const(7, precision), "f32")
    data = opset1.multiply(opset1.subtract(opset1.convert(x, "f32"), zero_point), const(0.02))
    scaled = opset1.multiply(data, const(np.linspace(0.5, 1, 8).reshape(1, 1, 8)))
    net = model([product(quantized(scaled, -2, 2.25)), opset1.sigmoid(data)], x)
    values = np.random.default_rng(0).integers(0, 120, (sizes, 4, 8)).astype(NUMPY[precision])
    compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=floats)
    kinds = [layer.layer_type for layer in execution_types(compiled, [values]).executed]
    assert sorted(each for each in kinds if each != "Reorder") == ["Eltwise", "Eltwise", "FullyConnected"]
    fixed = net.clone()
    fixed.reshape(values.shape)
    truth = core.compile_model(fixed, "CPU", TRUTH)
    if floats == "f32":
        for index, share in enumerate((0.02, 0)):
            assert_close([compiled(values)[index]], [truth(values)[index]], level=0.1, share=share)
    else:
        assert decibels(compiled, truth, [values]) > 40
