"""One test for each trap that the lowering avoids; those of single topics are in modules of their own."""

from __future__ import annotations

import numpy as np
import openvino
import pytest
from ovlpt.plugin_config import cpu, this_cpu

import ovlpt
from ovlpt.device import PluginLowering, subprocess_call
from ovlpt.device.compile import lpt_properties
from ovlpt.device.properties import F32
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import RELEASE, Core, Manager, NodeFactory, opset1, opset6
from ovlpt.precisions import NUMPY
from ovlpt.trace import InputError
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of, needs_avx2
from tests.lowered import FORMS, compiled_in, drop_in, weighted
from tests.networks import (
    const,
    convolution,
    depthwise,
    encoder,
    int8_weights,
    model,
    one_convolution,
    parameter,
    quantized,
    residual,
    shared_zero_point,
)
from tools.fuzz.graphs import Form


def test_a_constant_less_what_is_scaled_by_column_before_an_interval_of_open_sizes(core, infer):
    """The scale of the first column stood for all the others."""
    x = parameter([-1, 24])
    product = opset1.matmul(quantized(x, -1, 1.55), int8_weights([12, 24]), False, True)
    part = opset1.strided_slice(
        product, const([0, 1], "i64"), const([0, 12], "i64"), const([1, 1], "i64"), [1, 0], [1, 0]
    )
    net = model(quantized(opset1.subtract(const(-0.5), part), -2, 2.1), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 24)).astype(np.float32)]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    assert_close(infer(drop_in(net, core), inputs), [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize(
    "build", [one_convolution, residual, shared_zero_point, encoder], ids=lambda each: each.__name__
)
def test_drop_in_with_the_plugins_lpt_off_and_on(core, infer, build, lpt):
    net = build()
    inputs = inputs_of(net)
    expected = infer(net, inputs, "YES")
    scale = max(float(np.abs(value).max()) for value in expected)
    assert_close(infer(drop_in(net, core), inputs, lpt), expected, level=0.02 * scale, share=1)


def test_a_scale_after_integer_weights(core, infer):
    """ConvolutionMultiplyFusion and MatMulMultiplyFusion would multiply i8 weights by f32."""
    for net in (one_convolution(), encoder(False)):
        inputs = inputs_of(net)
        lowered = ovlpt.transform(net, core=core, serializable=False)
        assert "Clamp" not in [node.get_type_name() for node in lowered.get_ops()]
        layers = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"}))
        assert all(layer.is_int8 for layer in weighted(layers))
        assert_close(infer(lowered, inputs), infer(net, inputs, "YES"), level=np.inf, share=1e-3)


def test_a_scale_that_reaches_the_layer_through_an_add(core, infer):
    x = parameter([1, 16, 8, 8])
    net = model(
        opset1.multiply(convolution(quantized(x, 0, 2.55), 16, bias=True), const(np.full((1, 16, 1, 1), 0.5))), x
    )
    inputs = inputs_of(net)
    assert_close(infer(ovlpt.transform(net, core=core), inputs), infer(net, inputs, "YES"))


def test_a_lowered_model_that_is_saved(core, infer, tmp_path):
    net = one_convolution()
    inputs, expected = inputs_of(net), infer(one_convolution(), inputs_of(net), "YES")
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
    manager.register_pass(PluginLowering("CPU", serializable=True))
    manager.run_passes(net)
    openvino.save_model(net, tmp_path / "lowered.xml", compress_to_fp16=False)
    assert_close(infer(core.read_model(tmp_path / "lowered.xml"), inputs), expected)


@pytest.mark.parametrize("build", [one_convolution, residual, encoder], ids=lambda each: each.__name__)
@pytest.mark.parametrize("lowered", [False, True], ids=["transformed", "lowered"])
def test_a_transformed_model_that_is_saved_and_compiled_by_ovlpt(core, tmp_path, build, lowered):
    net = build()
    inputs, properties = inputs_of(net), {"properties": EXACT, "core": core}
    expected = list(ovlpt.compile_model(net, **properties)(inputs).values())
    transformed = ovlpt.transform(net, core=core, lowered=lowered)
    assert_close(list(ovlpt.compile_model(transformed, **properties)(inputs).values()), expected)
    openvino.save_model(transformed, tmp_path / "net.xml", compress_to_fp16=False)
    compiled = ovlpt.compile_model(tmp_path / "net.xml", **properties)
    assert_close(list(compiled(inputs).values()), expected)
    assert all(layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled)))


@pytest.mark.parametrize("axes", [(3,), (2, 3), (2,), (1,)], ids=["columns", "both", "rows", "heads"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_open", [False, True])
def test_a_constant_mask_on_quantized_scores(by_form, form, axes, is_open):
    """As a part of the interval it was read wrongly in the Subgraph of the attention, without an error."""
    shapes = [(1, 16, 4, 8), (1, 16, 4, 8), (1, 16, 4, 8)]
    queries, keys, values = (parameter(list(shape), name=name) for shape, name in zip(shapes, "qkv", strict=True))
    scale, rng = np.float32(1 / 16), np.random.default_rng(0)
    heads = [
        opset1.transpose(quantized(each, -128 * scale / 2, 127 * scale / 2), const(order, "i64"))
        for each, order in ((queries, [0, 2, 1, 3]), (keys, [0, 2, 3, 1]), (values, [0, 2, 1, 3]))
    ]
    scores = quantized(opset1.matmul(*heads[:2], False, False), -128 * scale * 4, 127 * scale * 4)
    sizes = [size if axis in axes else 1 for axis, size in enumerate((1, 4, 16, 16))]
    mask = np.where(rng.random(sizes) < 0.3, -1e4, rng.uniform(-1, 1, sizes))
    masked = opset1.add(opset1.multiply(scores, const(0.35)), const(mask))
    net = model(opset1.matmul(opset1.softmax(masked, 3), heads[2], False, False), [queries, keys, values])
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = by_form(net, inputs)
    if is_open:
        net.reshape({port: [-1, *shape[1:]] for port, shape in zip(net.inputs, shapes, strict=True)})
    assert_close([by_form(net, inputs, form)], [expected], level=0.002, share=1)


def _masked_attention(mask):
    """Of one new row and a cache of open length."""
    queries, past, new = (parameter([1, 8, rows, 8], name=name) for rows, name in ((1, "q"), (-1, "past"), (1, "new")))
    data = quantized(opset1.concat([past, new], 2), -1.8, 1.77)
    inputs = [queries.output(0), data.output(0), data.output(0), opset1.constant(mask).output(0)]
    attention = NodeFactory("opset13").create("ScaledDotProductAttention", inputs, {"causal": False})
    return model(quantized(attention, -1.8, 1.77), [queries, past, new])


@pytest.mark.parametrize("form", FORMS)
def test_a_constant_boolean_mask_on_an_attention_of_open_columns(by_form, form):
    """A Select of constants, which the plugin fused into the product once it had folded it, and threw. OpenVINO 2025.2 itself
    reads such a mask wrongly; on 2024.6, where the plugin has the attention as it is, it is read the other way around.
    """
    seen, rng = np.array([[True, False, True]]), np.random.default_rng(0)
    inputs = [rng.standard_normal((1, 8, rows, 8)).astype(np.float32) for rows in (1, 2, 1)]
    added = np.where(seen if RELEASE >= (2025, 0) else ~seen, 0, -np.inf)
    closed = _masked_attention(added.astype(np.float32))
    closed.reshape({port: list(values.shape) for port, values in zip(closed.inputs, inputs, strict=True)})
    apart = {"SNIPPETS_MODE": "DISABLE"}  # as in a model with states
    found = by_form(_masked_attention(seen), inputs, form, **apart)
    assert_close([found], [by_form(closed, inputs)], level=0.04, share=0.05)


@pytest.mark.parametrize("native_only", [False, True])
def test_a_scale_after_a_product_of_integers(core, infer, native_only):
    """As ONNX's MatMulInteger is read. The native library takes the Convert into the scale, which MatMulMultiplyFusion
    would then move into the weights: it threw.
    """
    x, rng = parameter([1, 6, 32]), np.random.default_rng(0)
    stored = opset1.convert(opset1.fake_quantize(x, const(0), const(255 / 64), const(0), const(255), 256), "u8")
    centred = opset1.subtract(opset1.convert(stored, "i32"), const(120, "i32"))
    weights = opset1.convert(const(rng.integers(-62, 63, (32, 16)), "i8"), "i32")
    product = opset1.convert(opset1.matmul(centred, weights, False, False), "f32")
    net = model(opset1.multiply(product, const(rng.uniform(1e-4, 2e-4, 16))), x)
    inputs = [rng.uniform(0, 4, (1, 6, 32)).astype(np.float32)]
    found = ovlpt.transform(net, core=core, native_only=native_only)
    assert_close(infer(found, inputs), [core.compile_model(net, "CPU", TRUTH)(inputs)[0]])


@pytest.mark.parametrize("form", FORMS)
def test_an_attention_of_open_columns_whose_scale_is_computed(by_form, form):
    """What stood between scale and mask was more than the plugin has in a layer of attention: it threw, or the process ended."""
    queries, keys = (parameter([-1, 3, -1, -1], name=name) for name in ("q", "k"))
    product = opset1.matmul(quantized(queries, -2, 2), keys, False, True)
    batch = opset1.gather(opset1.shape_of(queries), const(0, "i64"), const(0, "i64"))
    scaled = opset1.multiply(product, opset1.convert(batch, "f32"))
    mask = np.where(np.random.default_rng(0).random((8, 8)) < 0.7, 0, -100)
    net = model(opset1.matmul(opset1.softmax(opset1.add(scaled, const(mask)), 3), keys, False, False), [queries, keys])
    inputs = [np.random.default_rng(seed).uniform(-2, 2, (1, 3, 8, 4)).astype(np.float32) for seed in range(2)]
    np.testing.assert_allclose(by_form(net, inputs, form), by_form(net, inputs), atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_int8", [True, False], ids=["int8", "float"])
@pytest.mark.parametrize("widen", [opset1.minimum, opset1.add], ids=["minimum", "sum"])
def test_a_layer_and_what_one_column_is_broadcast_to(by_form, form, widen, is_int8):
    """Their sum throws where the width, which is known of one of the two only, is one; with the plugin's own LPT, too."""
    x = parameter([1, 8, -1, -1])
    data = quantized(widen(const(np.linspace(-0.5, 0.9, 8).reshape(1, 1, 1, 8)), x), -1, 1.55)
    layer = convolution(data if is_int8 else opset1.tanh(data), 8, kernel=1, bias=True)
    net = model(opset1.relu(opset1.add(layer, x)), x)
    for sizes in ((1, 8, 1, 1), (1, 8, 3, 8)):
        inputs, fixed = [np.random.default_rng(0).uniform(-1, 1, sizes).astype(np.float32)], net.clone()
        fixed.reshape(sizes)
        expected = by_form(fixed, inputs)
        assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "hint", [{"INFERENCE_NUM_THREADS": 1}, {"PERFORMANCE_HINT": "THROUGHPUT"}], ids=["one thread", "throughput"]
)
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "none"])
@pytest.mark.parametrize("top", [2, np.linspace(1, 2, 16).reshape(1, 16)], ids=["one interval", "by column"])
def test_two_products_that_become_one_subgraph(by_form, form, hint, biased, top):
    """Integers after the first that go into intervals by column would be read as floats."""
    x = parameter([1, 32])
    hidden = opset1.matmul(quantized(x, -2, 2.1), int8_weights([16, 32]), False, True)
    if biased:
        hidden = opset1.add(hidden, const(np.linspace(-1, 1, 16).reshape(1, 16)))
    hidden = opset1.fake_quantize(opset1.relu(hidden), const(0.0), const(top), const(0.0), const(2.0), 256)
    net = model(opset1.matmul(hidden, int8_weights([8, 16], seed=1), False, True), x)
    inputs = inputs_of(net)
    expected = by_form(net, inputs, **hint)
    assert_close([by_form(net, inputs, form, **hint)], [expected], level=0.03 * np.abs(expected).max(), share=1)


@needs_avx2
@pytest.mark.parametrize("form", FORMS)
def test_what_two_products_read_ends_a_subgraph(core, by_form, tmp_path, form):
    """So the interval by column stays a part of the layer before them, as in stock, and is read rightly."""
    x = parameter([4, 32])
    hidden = opset1.relu(opset1.matmul(quantized(x, -2, 2.1), int8_weights([16, 32]), False, True))
    hidden = opset1.fake_quantize(hidden, const(0.0), BY_COLUMN, const(0.0), const(2.0), 256)
    net = model([opset1.matmul(hidden, int8_weights([8, 16], seed=seed), False, True) for seed in (1, 2)], x)
    inputs, hint = inputs_of(net), {"INFERENCE_NUM_THREADS": 1}
    expected = by_form(net, inputs, **hint)
    assert_close([by_form(net, inputs, form, **hint)], [expected], level=0.03 * np.abs(expected).max(), share=1)
    compiled = [compiled_in(form, net, core, tmp_path, **hint), core.compile_model(net, "CPU", {**F32, **hint})]
    layers = [[layer.layer_type for layer in ovlpt.execution_types(each, inputs).executed] for each in compiled]
    counts = [sum(each in ("Eltwise", "FakeQuantize", "Subgraph") for each in types) for types in layers]
    assert counts[0] <= counts[1]


def shifted(data):
    return quantized(opset1.add(opset1.relu(data), BY_COLUMN), 0, 2)


def scaled(data):
    return opset1.multiply(quantized(data, 0, 2), BY_COLUMN)


def to_columns(data):
    return opset1.fake_quantize(data, const(0.0), const(2.0), const(0.0), BY_COLUMN, 256)


def of_columns(data):
    return opset1.fake_quantize(opset1.sigmoid(data), const(0.0), BY_COLUMN, const(0.1), BY_COLUMN, 256)


BY_COLUMN = const(np.linspace(1, 2, 16).reshape(1, 16))


@pytest.mark.parametrize("hint", [{"INFERENCE_NUM_THREADS": 1}, {"PERFORMANCE_HINT": "THROUGHPUT"}], ids=str)
@pytest.mark.parametrize("scale", [None, const(-0.7), BY_COLUMN], ids=["alone", "scaled", "by column"])
def test_a_constant_by_column_less_a_product_in_a_pipeline(core, by_form, scale, hint):
    """Became part of the interval: wrong numbers, from memory that is not the network's."""
    x = parameter([1, 32])
    hidden = opset1.matmul(quantized(x, -2, 2.1), int8_weights([16, 32]), False, True)
    if scale is not None:
        hidden = opset1.multiply(hidden, scale)
    hidden = quantized(opset1.subtract(BY_COLUMN, hidden), 0, 2)
    net = model(opset1.matmul(hidden, int8_weights([8, 16], seed=1), False, True), x)
    inputs = inputs_of(net)
    found = core.compile_model(drop_in(net, core), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO", **hint})(inputs)[0]
    expected = by_form(net, inputs)  # with the hint, 2024.6 is wrong by itself
    assert_close([found], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("quantize", [shifted, scaled, to_columns, of_columns], ids=lambda each: each.__name__)
@pytest.mark.parametrize("weights", ["float", "int8"])
def test_an_interval_by_column_between_two_products(by_form, form, quantize, weights):
    """As above, where the interval is of real values, or becomes one by column when the plugin optimizes."""
    x = parameter([3, 32])
    hidden = opset1.matmul(quantized(x, -2, 2.1), int8_weights([16, 32]), False, True)
    hidden = quantize(opset1.add(hidden, const(np.linspace(-1, 1, 16).reshape(1, 16))))
    matrix = int8_weights([8, 16], seed=1)
    if weights == "float":
        matrix = const(folded_constant(matrix.output(0)))
    net = model(opset1.matmul(hidden, matrix, False, True), x)
    inputs, hint = inputs_of(net), {"INFERENCE_NUM_THREADS": 1}
    expected = by_form(net, inputs, **hint)
    assert_close([by_form(net, inputs, form, **hint)], [expected], level=0.03 * np.abs(expected).max(), share=1)


def attentions_with_one_mask(hidden: float):
    """Two of them in a row, on quantized data, whose scores less ``(1 - mask) * hidden`` go into a Softmax each."""
    x, m = parameter([1, 12, 16]), parameter([1, 12], "i64")
    mask = opset1.reshape(opset1.convert(m, "f32"), const([1, 1, 1, 12], "i64"), False)
    mask, data = opset1.multiply(opset1.subtract(const(1.0), mask), const(hidden)), x
    for layer in range(2):
        data = quantized(data, -4, 3.96875)
        query, key, value = (
            opset1.transpose(
                opset1.reshape(
                    opset1.matmul(data, int8_weights([16, 16], seed=3 * layer + seed), False, True),
                    const([1, 12, 4, 4], "i64"), False,
                ), const([0, 2, 1, 3], "i64"),
            ) for seed in range(3)
        )  # fmt: skip
        scores = opset1.subtract(opset1.matmul(query, key, False, True), mask)
        mixed = opset1.matmul(opset6.softmax(scores, 3), value, False, False)
        mixed = opset1.reshape(opset1.transpose(mixed, const([0, 2, 1, 3], "i64")), const([1, 12, 16], "i64"), False)
        data = opset1.add(mixed, data)
    return model(data, [x, m])


@pytest.mark.parametrize("hidden", [1e30, 3.4028234e38], ids=["rounded", "largest"])
@pytest.mark.parametrize("form", ["in memory", "saved"])
def test_a_mask_of_several_attentions_in_bf16(by_form, form, hidden):
    """Multiplied apart from its shift, what is not hidden was as much as bf16 rounds of it, or not a number."""
    net = attentions_with_one_mask(hidden)
    inputs = [*inputs_of(net)[:1], np.array([[1] * 8 + [0] * 4])]
    expected = by_form(net, inputs)
    found = by_form(net, inputs, form, INFERENCE_PRECISION_HINT="bf16")
    assert_close([found], [expected], level=0.03 * np.abs(expected).max(), share=1)


def errors_of_few_rows() -> list[float]:
    """Of attentions over channels, whose scores are products of integers and whose result is quantized."""
    core, errors, generator = Core(), [], np.random.default_rng(0)
    for rows, columns in ((8, 576), (32, 160)):
        query, key, value = tensors = [parameter([1, 2, rows, columns], name=name) for name in "qkv"]
        # half of the integers: CPUs without VNNI add two products in 16 bits
        factors = [quantized(each, -2.56, 2.54) for each in (query, key)]
        mixed = opset1.matmul(opset6.softmax(opset1.matmul(*factors, False, True), 3), value, False, False)
        rows_and_columns = const([1, 2 * rows, columns], "i64")
        net = model(opset1.reshape(quantized(mixed, -1.28, 1.27), rows_and_columns, False), tensors)
        inputs = [generator.uniform(-1, 1, each.shape).astype(np.float32) for each in net.inputs]
        expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
        for serializable in (False, True):
            lowered = ovlpt.transform(net, core=core, serializable=serializable)
            compiled = core.compile_model(lowered, "CPU", {**EXACT, **lpt_properties(lowered, "CPU")})
            errors += [float(np.abs(compiled(inputs)[0] - expected).max()) for _ in range(10)]
    return errors


def test_a_quantization_after_an_attention_of_few_rows():
    """In one Subgraph with both products it lets the second write beyond its memory, and the process end."""
    assert max(subprocess_call.call(errors_of_few_rows)[0]) < 1.1 * 0.01  # one step


def errors_of_groups() -> list[float]:
    """Of residual blocks with a GroupNormalization, in a pipeline of one's own and in the simulation, from numpy."""
    core, errors = Core(), []
    scale, bias = np.linspace(0.5, 1.5, 8), np.linspace(-0.5, 0.5, 8)
    data = np.random.default_rng(0).normal(0, 0.6, (2, 1, 8, 6, 6)).astype(np.float32)
    centred = data[1].reshape(4, -1) - data[1].reshape(4, -1).mean(1, keepdims=True)
    groups = (centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-3)).reshape(data[1].shape)
    groups = groups * scale.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1)
    for kind, compute in (("add", np.add), ("multiply", np.multiply)):
        x, y = parameter([1, 8, 6, 6], name="x"), parameter([1, 8, 6, 6], name="y")
        inputs = [each.output(0) for each in (y, const(scale), const(bias))]
        attributes = {"num_groups": 4, "epsilon": 1e-3}
        normalized = NodeFactory("opset12").create("GroupNormalization", inputs, attributes)
        net = model(getattr(opset1, kind)(quantized(x, 0, 2.55), normalized), [x, y])
        expected = compute(np.clip(np.rint(data[0] / 0.01), 0, 255) * 0.01, groups)
        for compiled in (core.compile_model(drop_in(net, core), "CPU", EXACT), simulate(net, core)):
            errors.append(float(np.abs(compiled(list(data))[0] - expected).max()))
    return errors


def test_a_group_normalization_beside_a_quantized_tensor():
    """In one Subgraph they make the process end, and so does a Relu in the place of the quantization, in plain OpenVINO."""
    assert max(subprocess_call.call(errors_of_groups)[0]) < 1e-4


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_of_a_float_layer_of_open_sizes(by_form, form, kernel):
    """Restored when the model runs in several streams, they were wrong, those of size 1 with the plugin's own LPT, too."""
    x = parameter([-1, 8, 6, 6])
    normalized = opset6.mvn(quantized(x, 0, 2.55), const([2, 3], "i64"), True, 1e-3, "inside_sqrt")
    net = model([convolution(x, 8, kernel), normalized], x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 8, 6, 6)).astype(np.float32)]
    assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [by_form(net, inputs)])


@pytest.mark.parametrize("case", ["weights first", "a vector"])
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_of_a_float_matmul(by_form, form, case):
    """As above."""
    x = parameter([8] if case == "a vector" else [-1, 8])
    weights = int8_weights([8, 12], 1)
    operands = (x, weights, False, False) if case == "a vector" else (weights, x, True, True)
    product = opset1.matmul(*operands)
    y = parameter([-1, 6], name="y")
    normalized = opset6.mvn(quantized(y, 0, 2.55), const([1], "i64"), True, 1e-3, "inside_sqrt")
    net = model([product, normalized], [x, y])
    data = np.random.default_rng(0).uniform(-1, 1.5, (1, 8)).astype(np.float32)
    inputs = [data[0] if case == "a vector" else data, data[:, :6]]
    assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [by_form(net, inputs)])


@pytest.mark.parametrize("serializable", [False, True])
def test_integer_weights_of_a_float_matmul_of_what_becomes_a_vector(core, infer, serializable):
    """As above, where a model of open rank is given one once it is transformed."""
    x = opset1.parameter(openvino.PartialShape.dynamic(), np.float32, "x")
    y = parameter([-1, 6], name="y")
    normalized = opset6.mvn(quantized(y, 0, 2.55), const([1], "i64"), True, 1e-3, "inside_sqrt")
    net = model([opset1.matmul(x, int8_weights([8, 12], 1), False, False), normalized], [x, y])
    lowered = ovlpt.transform(net, core=core, serializable=serializable)
    for each in (net, lowered):
        each.reshape({each.input(0): openvino.PartialShape([-1]), each.input(1): openvino.PartialShape([-1, 6])})
    data = np.random.default_rng(0).uniform(-1, 1.5, (1, 8)).astype(np.float32)
    inputs = [data[0], data[:, :6]]
    expected = infer(net, inputs, "NO")
    for _ in range(4):
        assert_close(infer(lowered, inputs, "NO", PERFORMANCE_HINT="THROUGHPUT"), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows, columns", [(1, 4), (2, 8), (3, 5), (12, 1)])
def test_few_integer_weights_of_a_float_matmul(by_form, form, rows, columns):
    """As above, of each third compilation, where sizes are fixed, too: the plugin compresses no such matrix."""
    x = parameter([-1, 10, rows])
    product = opset1.matmul(x, int8_weights([columns, rows], 1), False, True)
    net = model(quantized(product, -3, 3), x)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 10, rows)).astype(np.float32)]
    expected = by_form(net, inputs)
    for _ in range(8):
        assert_close([by_form(net, inputs, form, PERFORMANCE_HINT="THROUGHPUT")], [expected], level=0.03, share=0.1)


def test_integers_plus_a_constant_that_is_0(core, infer):
    """The plugin drops the sum, and with it the type that it reports: it threw."""
    x = parameter([1, 4, 4, 4])
    zeros = quantized(const(np.zeros((1, 4, 1, 1))), 0, 2.55)
    least = opset1.minimum(const(0.0), quantized(x, 0, 2.55))
    net = model(
        opset1.convolution(opset1.add(least, zeros), const(np.ones((6, 4, 1, 1))), [1, 1], *[[0, 0]] * 2, [1, 1]), x
    )
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 4, 4, 4)).astype(np.float32)]
    for lowered in (drop_in(net, core), ovlpt.transform(net, core=core)):
        assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transposed", [False, True])
def test_integer_weights_of_a_float_matmul_scaled_by_rows(by_form, form, transposed):
    """The plugin takes such scales for those of columns; with its own LPT, too."""
    x = parameter([3, 32])
    weights = int8_weights([48, 32], 1) if transposed else int8_weights([32, 48])
    net = model(opset1.matmul(quantized(x, 0, 2.55), weights, False, transposed), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (3, 32)).astype(np.float32)]
    values = folded_constant(weights.output(0)).astype(np.float64)
    expected = np.round(inputs[0] / 0.01) * 0.01 @ (values.T if transposed else values)
    assert_close([by_form(net, inputs, form)], [expected], level=0.02, share=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(), (1, 1)], ids=["scalar", "of rank 2"])
@pytest.mark.parametrize("rows", [1, 3])
def test_integer_weights_of_a_float_matmul_with_one_scale(by_form, form, rows, shape):
    """Before 2025.0 the plugin reads as many scales as there are columns, with its own LPT, too."""
    x, rng = parameter([rows, 32]), np.random.default_rng(0)
    stored = rng.integers(-63, 64, (48, 32))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), const(np.full(shape, 0.02)))
    net = model(opset1.matmul(opset1.sigmoid(quantized(x, 0, 2.55)), weights, False, True), x)
    inputs = [rng.uniform(0, 2.55, (rows, 32)).astype(np.float32)]
    expected = 1 / (1 + np.exp(-np.round(inputs[0] / 0.01) * 0.01)) @ (stored.T * 0.02)
    found = by_form(net, inputs, form)  # it quantizes the data dynamically
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_integer_weights_of_a_float_matmul_where_floats_are_f16(core):
    """As above, of any size where sizes are dynamic."""
    x = parameter([-1, 10, 16])
    net = model(quantized(opset1.matmul(x, int8_weights([8, 16], 1), False, True), -3, 3), x)
    lowered = ovlpt.transform(net, core=core, serializable=False, precision="f16")
    (product,) = (node for node in lowered.get_ops() if node.get_type_name() == "MatMul")
    assert product.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("form", FORMS)
def test_a_factor_by_channel_before_a_quantization_and_a_relu_of_open_batch(by_form, form):
    """As above; the Relu moves before the factor, which then has one reader."""
    x = parameter([-1, 12])
    scaled = opset1.multiply(const(np.linspace(0.5, 2, 12).reshape(1, 12)), x)
    halves = opset1.split(opset1.relu(scaled), const(1, "i64"), 2).outputs()
    net = model([quantized(scaled, -3.3, 4.5), *map(opset1.sigmoid, halves)], x)
    inputs = [np.random.default_rng(0).standard_normal((2, 12)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=1e-2)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("form", FORMS)
def test_a_factor_after_a_zero_point_and_a_scale(by_form, form, precision):
    """It was added."""
    x = parameter([2, 6, 16], precision)
    rows = np.linspace(1, 2, 6).reshape(1, 6, 1)
    data = opset1.convert(x, "f32") if precision != "f32" else x
    data = opset1.fake_quantize(data, const(-rows), const(rows + 0.3), const(-rows), const(rows + 0.3), 256)
    net = model(opset1.multiply(opset1.matmul(data, int8_weights([4, 16]), False, True), const(0.683)), x)
    inputs = [value.astype(x.get_output_element_type(0).to_dtype()) for value in inputs_of(net)]
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=0.02 * np.abs(expected).max(), share=1)


def test_a_saved_model_has_the_post_operations_of_one_in_memory(core, tmp_path):
    """Its scales and biases are those of its layers, and nothing stands between."""
    x = parameter([1, 16, 8, 8])
    biased = opset1.add(
        convolution(quantized(x, 0, 2.55), 16, kernel=1), const(np.linspace(-1, 1, 16).reshape(1, 16, 1, 1))
    )
    net = model(convolution(quantized(biased, 0, 2.55), 16, kernel=1, seed=1), x)
    lowered = ovlpt.transform(net, core=core)
    assert "Clamp" not in [node.get_type_name() for node in lowered.get_ops()]
    openvino.save_model(lowered, tmp_path / "net.xml", compress_to_fp16=False)
    inputs, properties = inputs_of(net), {**EXACT, "LP_TRANSFORMS_MODE": "NO"}
    found = core.compile_model(tmp_path / "net.xml", "CPU", properties)
    expected = core.compile_model(ovlpt.transform(net, core=core, serializable=False), "CPU", properties)
    executed = [
        [(layer.layer_type, layer.exec_type) for layer in ovlpt.execution_types(each).executed]
        for each in (found, expected)
    ]
    assert executed[0] == executed[1]
    assert np.array_equal(found(inputs)[0], expected(inputs)[0])


@pytest.mark.parametrize("hint", [{}, {"INFERENCE_NUM_THREADS": 1}, {"PERFORMANCE_HINT": "THROUGHPUT"}], ids=str)
def test_a_saved_network_has_the_numbers_of_one_in_memory(core, tmp_path, hint):
    """Of shuffled channels and a head: with one thread other operations were fused, and rounded apart."""
    random, size = np.random.default_rng(3), (1, 32, 12, 12)

    def layer(data, groups, low, high, active=opset1.relu):
        shape = (16, 1, 1, 3, 3) if groups else (16, 16, 1, 1)
        build = opset1.group_convolution if groups else opset1.convolution
        values = random.standard_normal(shape) / np.sqrt(np.prod(shape[-3:] if groups else shape[1:]))
        ends = np.abs(values).max(tuple(range(1, len(shape))), keepdims=True)
        weights = opset1.fake_quantize(const(values), *[const(sign * ends) for sign in (-1, 1)] * 2, 255)
        pads = [1, 1] if groups else [0, 0]
        biased = opset1.add(
            build(data, weights, [1, 1], pads, pads, [1, 1]), const(random.uniform(-0.3, 0.3, (1, 16, 1, 1)))
        )
        return quantized(active(biased), low, high)

    x = parameter(list(size))
    data = quantized(x, -2.5, 2.6)
    for _ in range(6):
        kept, changed = opset1.split(data, const(1, "i64"), 2).outputs()
        changed = layer(layer(layer(changed, False, 0, 2.2), True, -2.1, 2.3, lambda value: value), False, -2.5, 2.6)
        pairs = opset1.reshape(opset1.concat([kept, changed.output(0)], 1), const([1, 2, 16, 12, 12], "i64"), False)
        data = opset1.reshape(opset1.transpose(pairs, const([0, 2, 1, 3, 4], "i64")), const(size, "i64"), False)
    mean = quantized(opset1.reduce_mean(data, const([2, 3], "i64"), False), -1, 1.2)
    net = model(opset1.matmul(mean, int8_weights((10, 32)), False, True), x)
    in_memory, saved = (compiled_in(form, net, core, tmp_path, **hint) for form in FORMS[:2])
    for inputs in random.uniform(-2.4, 2.5, (24, 1, *size)).astype(np.float32):
        np.testing.assert_array_equal(saved(list(inputs))[0], in_memory(list(inputs))[0])


def test_a_residual_add_reads_integers_without_a_convert(core):
    lowered = ovlpt.transform(residual(), core=core)
    add = next(
        node
        for node in lowered.get_ops()
        if node.get_type_name() == "Add"
        and "u8" in [str(v.get_element_type().get_type_name()) for v in node.input_values()]
    )
    assert add.get_output_element_type(0).get_type_name() == "f32"
    layers = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"}))
    assert not [
        layer for layer in layers.executed if layer.layer_type in ("Eltwise", "Subgraph") and layer.precision == "f32"
    ][1:]


@pytest.mark.parametrize("low", [-2.0, -1.7, 0.0])
def test_integers_that_a_float_product_of_open_sizes_reads(core, low):
    """The Convert between them is not a layer of its own."""
    x, rng = parameter([-1, 4, 6, 8]), np.random.default_rng(0)
    data = opset1.reshape(quantized(x, low, 2 * 127 / 128), const(np.array([-1, 6, 8]), "i64"), False)
    net = model(
        [
            opset1.matmul(data, const(rng.standard_normal((1, 8, 5))), False, False),
            opset1.matmul(data, int8_weights([4, 8]), False, True),
        ],
        x,
    )
    inputs = [rng.standard_normal((2, 4, 6, 8), np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    as_it_is = cpu.config(
        this_cpu.takes_signed_activations(), slow_mat_mul=False
    )  # where a CPU would take a convolution
    compiled = ovlpt.compile_model(net, "CPU", EXACT, as_it_is, core=core)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)
    assert_close(list(compiled(inputs).values()), list(expected.values()))


def test_a_gate_of_open_sizes_reads_integers(core):
    """The quantization of the gate, the product with scales by column and the quantization after it are one layer."""
    x = parameter([-1, 8, 8, 16])
    parts = [quantized(x, -1.28, 1.27), quantized(opset1.relu(x), -0.64, 0.635)]
    gate = quantized(opset1.sigmoid(opset1.concat([x, x], 3)), -1.28, 1.27)
    product = opset1.multiply(gate, opset1.concat(parts, 3))
    net = model(convolution(quantized(product, -1.28, 1.27), 8), x)
    inputs = [np.random.default_rng(0).standard_normal((2, 8, 8, 16), np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    assert_close(list(compiled(inputs).values()), list(stock(inputs).values()))


ARITHMETIC = {"add": opset1.add, "subtract": opset1.subtract, "multiply": opset1.multiply}


def positions(precision: str, read, before=None):
    """A quantized layer whose data depend on open positions: integers, arithmetic ``before`` with a constant, a scale."""
    place, x = parameter([-1, -1, 1], precision, "place"), parameter([-1, -1, 8])
    integers = before(place, const(3, precision)) if before else place
    added = read(opset1.convert(integers, "f32"), const(np.geomspace(1, 0.03, 8).reshape(1, 1, 8)))
    return model(opset1.matmul(quantized(opset1.add(x, added), -3, 3), int8_weights([8, 8]), False, True), [place, x])


def of_positions(precision: str, batch: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    place = rng.integers(3, 40, (batch, length, 1)).astype(NUMPY[precision])
    return [place, rng.standard_normal((batch, length, 8)).astype(np.float32)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["i64", "u8"])
@pytest.mark.parametrize("after", ARITHMETIC)
@pytest.mark.parametrize("before", ARITHMETIC)
def test_integers_and_floats_are_computed_with_constants(by_form, form, precision, after, before):
    """As sizes and positions are; two sums, or two products, would be merged over the Convert between them and throw."""
    net = positions(precision, lambda *operands: opset1.sin(ARITHMETIC[after](*operands)), ARITHMETIC[before])
    inputs = of_positions(precision, 2, 5)
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=0.02)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
@pytest.mark.parametrize("levels", [-128, 0], ids=["i8", "u8"])
def test_patches_that_are_moved_to_rows_stay_integers(core, by_form, form, batch, levels):
    """A Convert of theirs would be moved before the Transpose, which is then a layer that moves floats."""
    x = parameter([batch, 3, 16, 16])
    patches = opset1.convolution(quantized(x, 0, 2.55), int8_weights([16, 3, 4, 4]), [4, 4], [0, 0], [0, 0], [1, 1])
    rows = opset1.reshape(quantized(patches, levels / 32, (levels + 255) / 32), const([0, 16, 16], "i64"), True)
    rows = opset1.transpose(rows, const([0, 2, 1], "i64"))
    token = opset1.reduce_mean(x, const([1, 2], "i64"), False)
    joined = opset1.concat([opset1.unsqueeze(token, const([1], "i64")), rows], 1)
    norm = opset6.mvn(joined, const([2], "i64"), True, 1e-6, "inside_sqrt")
    layer = opset1.matmul(quantized(norm, -2, 2), int8_weights([8, 16], seed=1), False, True)
    net = model([layer], x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 3, 16, 16)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.1, share=0.01)
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, cpu.config(this_cpu.takes_signed_activations()), core=core)
    executed = [ovlpt.execution_types(each, inputs).executed for each in (compiled, stock)]
    assert len(executed[0]) <= len(executed[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, -1])
@pytest.mark.parametrize("levels", [-128, 0], ids=["i8", "u8"])
def test_a_quantized_tensor_that_is_turned_before_a_sum_stays_in_integers(core, by_form, form, batch, levels):
    """As the positions of BoTNet's attention: its Convert would be moved before the Transpose, a layer more."""
    x = parameter([batch, 8, 6, 6])
    turned = []
    for axis, order, step in ((2, [0, 3, 1, 2], 1 / 32), (3, [0, 2, 1, 3], 1 / 40)):
        line = opset1.reduce_mean(convolution(quantized(x, 0, 2.55), 8, seed=axis), const([axis], "i64"), True)
        repeats = const([6 if at == axis else 1 for at in range(4)], "i64")
        plane = opset1.tile(quantized(line, levels * step, (levels + 255) * step), repeats)
        plane = opset1.transpose(plane, const(order, "i64"))
        turned.append(opset1.reshape(plane, const([0, 6, 8, 6], "i64"), True))
    net = model(opset1.softmax(opset1.add(*turned), 3), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 8, 6, 6)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=0.01)
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = ovlpt.compile_model(net, "CPU", EXACT, cpu.config(this_cpu.takes_signed_activations()), core=core)
    executed = [ovlpt.execution_types(each, inputs).executed for each in (compiled, stock)]
    assert len(executed[0]) <= len(executed[1])


@pytest.mark.parametrize("form", ["in memory", "saved"])
@pytest.mark.parametrize("shape", [(1, 8, 10, 10), (-1, 8, -1, -1)], ids=["fixed", "open"])
@pytest.mark.parametrize(
    "build",
    [
        lambda data: [data, convolution(data, 8)],
        lambda data: [opset1.reshape(data, const([0, 80, -1], "i64"), True)] * 2,
        lambda data: [opset1.max_pool(data, [1, 1], [1, 1], [1, 1], [3, 3])] * 2,
    ],
    ids=["with a layer", "after a Reshape", "after a MaxPool"],
)
def test_an_end_that_shares_its_value(core, tmp_path, build, shape, form):
    """What scales the integers for an end of the model was a layer of its own, for each end after a Reshape or MaxPool."""
    x = parameter(shape)
    net = model(build(quantized(x, 0, 2.55)), x)
    inputs = [np.random.default_rng(0).uniform(-1, 3, (1, 8, 10, 10)).astype(np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = compiled_in(form, net, core, tmp_path)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    expected, found = core.compile_model(net, "CPU", TRUTH)(inputs), compiled(inputs)
    for end in range(2):
        assert_close([found[end]], [expected[end]], level=0.03 * np.abs(expected[end]).max(), share=1)


@pytest.mark.parametrize("form", ["in memory", "saved"])
@pytest.mark.parametrize("batch", [1, -1])
def test_branches_that_are_summed_and_weighted(core, tmp_path, batch, form):
    """Selective kernels: the scale of the stacked branches before their sum was one layer, their Convert another."""
    x = parameter([batch, 8, 6, 6])
    branches = [
        opset1.unsqueeze(
            quantized(opset1.relu(convolution(quantized(x, -1, 1.5), 8, seed=seed)), 0, 2 - seed), const([1], "i64")
        )
        for seed in range(2)
    ]
    stacked = opset1.concat(branches, 1)
    mean = opset1.reduce_mean(opset1.reduce_sum(stacked, const([1], "i64"), False), const([2, 3], "i64"), True)
    gate = quantized(opset1.sigmoid(opset1.unsqueeze(mean, const([1], "i64"))), 0, 1)
    product = quantized(opset1.multiply(stacked, gate), 0, 2)
    net = model(opset1.reduce_sum(product, const([1], "i64"), False), x)
    inputs = [np.random.default_rng(0).standard_normal((1, 8, 6, 6), np.float32)]
    stock = core.compile_model(net, "CPU", EXACT)
    compiled = compiled_in(form, net, core, tmp_path)
    counts = [len(ovlpt.execution_types(each, inputs).executed) for each in (compiled, stock)]
    assert counts[0] <= counts[1]
    expected = core.compile_model(net, "CPU", TRUTH)(inputs)[0]
    assert_close([compiled(inputs)[0]], [expected], level=0.03 * np.abs(expected).max(), share=1)


@pytest.mark.parametrize("zero_point", [40, 215])
def test_a_product_by_u8_weights_with_a_zero_point_beyond_i8(core, zero_point):
    """As ONNX Runtime quantizes weights to u8; kernels read i8 ones, which are 128 less, as the zero point then is."""
    x, rng = parameter([1, 16, 192]), np.random.default_rng(0)
    stored = const(rng.integers(64, 192, (192, 32)), "u8")
    weights = opset1.multiply(opset1.subtract(opset1.convert(stored, "f32"), const(zero_point)), const(0.01))
    net = model(opset1.relu(opset1.matmul(quantized(x, -1.28, 1.27), weights, False, False)), x)
    compiled, inputs = ovlpt.compile_model(net, "CPU", EXACT, core=core), inputs_of(net)
    assert [layer.is_int8 for layer in weighted(ovlpt.execution_types(compiled, inputs))] == [True]
    truth = core.compile_model(net, "CPU", TRUTH)(inputs)
    assert_close(list(compiled(inputs).values()), list(truth.values()))


def test_a_difference_of_open_sizes_reads_integers(core):
    """Of quantized data less their mean, as a normalization over the channels begins; in bf16 a Convert would be a layer."""
    x = parameter([-1, 8, 8, 16])
    data = quantized(convolution(quantized(x, -1.28, 1.27), 8), -2.56, 2.54)
    normal = opset6.mvn(data, const([1], "i64"), True, 1e-6, "inside_sqrt")
    net = model(convolution(quantized(normal, -2.56, 2.54), 8, seed=1), x)
    lowered = ovlpt.transform(net, core=core, serializable=False)
    (scale,) = (
        node.input_value(0).get_node()
        for node in lowered.get_ordered_ops()
        if node.get_type_name() == "Subtract" and node.input_value(1).get_node().get_type_name() == "Multiply"
    )
    assert scale.get_input_element_type(0).get_type_name() == "i8"
    inputs = [np.random.default_rng(0).uniform(-1.28, 1.27, (2, 8, 8, 16)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([2, 8, 8, 16])
    expected = core.compile_model(closed, "CPU", TRUTH)(inputs)
    assert_close(list(ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs).values()), list(expected.values()))


def test_a_layer_of_rank_4_fuses_its_scale(core, infer):
    """Channel-last layers: MatMul [N, H, W, C] with a scale per channel and an elementwise chain after."""
    x = parameter([1, 7, 7, 32])
    product = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([64, 32]), False, True)
    biased = opset1.add(product, const(np.random.default_rng(0).standard_normal((1, 1, 1, 64))))
    second = opset1.matmul(quantized(opset1.relu(biased), 0, 4), int8_weights([32, 64], seed=1), False, True)
    net = model(second, x)
    inputs = inputs_of(net)
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT, config=cpu.config())
    layers = ovlpt.execution_types(compiled, inputs).executed
    assert sum(layer.is_int8 for layer in layers if layer.layer_type == "FullyConnected") == 2
    assert not [layer for layer in layers if layer.layer_type == "Eltwise"]
    expected = infer(net, inputs, "YES")
    assert_close(list(compiled(inputs).values()), expected, level=0.02 * float(np.abs(expected[0]).max()), share=1e-2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "after",
    [
        lambda product, ends: opset1.multiply(product, ends[1]),
        lambda product, ends: opset1.multiply(opset1.relu(product), ends[1]),
        lambda product, ends: opset1.fake_quantize(product, *ends, *ends, 256),
    ],
    ids=["scale", "scaled relu", "interval"],
)
def test_what_differs_by_column_after_a_product_of_two_tensors(by_form, form, after):
    """It was read from beyond its array, as where a value is padded to what one of the two was quantized from."""
    x, y = parameter([1, 2, 8, 12]), parameter([1, 2, 12, 5])
    product = opset1.matmul(quantized(x, 0, 2.55), quantized(y, -1.28, 1.27), False, False)
    high = np.linspace(0.5, 2, 5).reshape(1, 1, 1, 5)
    net = model(after(product, [const(-high), const(high)]), [x, y])
    inputs = inputs_of(net)
    expected = by_form(net, inputs)
    assert_close([by_form(net, inputs, form)], [expected], level=0.03 * np.abs(expected).max(), share=0.05)


@pytest.mark.skipif(RELEASE < (2026, 0), reason="a MatMul of rank 4 absorbs no scale")
def test_a_layer_of_rank_4_without_bias_is_not_reshaped(core):
    x = parameter([1, 7, 7, 32])
    product = opset1.relu(opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([64, 32]), False, True))
    net = model(opset1.matmul(quantized(product, 0, 4), int8_weights([32, 64], seed=1), False, True), x)
    layers = ovlpt.execution_types(ovlpt.compile_model(net, core=core, properties=EXACT, config=cpu.config())).executed
    assert not [layer for layer in layers if layer.layer_type in ("Eltwise", "Reshape")]


def test_a_transpose_before_a_product(core, infer):
    """Fused by the plugin, it would make a MatMul of integers."""
    x, y = parameter([1, 2, 16, 8], name="x"), parameter([1, 2, 16, 8], name="y")
    swapped = opset1.transpose(quantized(y, -1.28, 1.27), const([0, 1, 3, 2], "i64"))
    net = model(opset1.matmul(quantized(x, -1.28, 1.27), swapped, False, False), [x, y])
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "YES"))


def test_a_normalization_without_a_kernel(core, infer):
    """Decomposed by the plugin in the type of its data."""

    x = parameter([1, 8, 8, 16])
    attributes = {"eps": 1e-6, "normalize_variance": True, "eps_mode": "inside_sqrt"}
    inputs_ = [quantized(x, -2.56, 2.54).output(0), const([-1], "i64").output(0)]
    normalized = NodeFactory("opset6").create("MVN", inputs_, attributes)
    net = model(opset1.matmul(quantized(normalized, -2.56, 2.54), int8_weights([8, 16]), False, True), x)
    inputs = inputs_of(net)
    expected = infer(net, inputs, "YES")
    assert_close(infer(drop_in(net, core), inputs), expected, level=0.05 * float(np.abs(expected[0]).max()), share=1e-2)


@pytest.mark.parametrize("low", [0.0, -1.0], ids=["scale", "zero point"])
def test_rows_quantized_apart_before_a_product_of_open_sizes(core, low):
    """What differs between rows would be taken for what differs between columns."""
    x = parameter([-1, 5, 16])
    steps = np.arange(1, 6).reshape(1, 5, 1)
    ends = [const(low * steps), const(1.27 * steps)]
    rows = opset1.fake_quantize(x, *ends, *ends, 256)
    net = model(opset1.matmul(rows, int8_weights([12, 16]), False, True), x)
    data = [np.random.default_rng(0).uniform(-1, 6, (2, 5, 16)).astype(np.float32)]
    simulated = core.compile_model(net, "CPU", TRUTH)(data)[0]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)(data)[0]
    assert np.abs(compiled - simulated).max() < 0.02 * np.abs(simulated).max()


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize("idle", ["Pad", "Transpose"])
def test_what_does_nothing_after_one_element_of_open_sizes(core, infer, idle, lpt):
    """The plugin drops it, and the scale behind it would be fused into the layer."""
    x = parameter([-1, 8, -1])
    layer = opset1.convolution(quantized(x, -1, 1), int8_weights([8, 8, 1]), [1], [0], [0], [1])
    zeros = const([0, 0, 0], "i64")
    kept = {
        "Pad": lambda: opset1.pad(layer, zeros, zeros, "constant", const(0.5)),
        "Transpose": lambda: opset1.transpose(layer, const([0, 1, 2], "i64")),
    }[idle]()
    net = model(opset1.multiply(kept, const(np.linspace(1, 2, 8).reshape(1, 8, 1))), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, (1, 8, 1)).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "NO"), level=0.01, share=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
def test_a_layer_of_32_bits(core, by_form, kind, form):
    """As ConvInteger and MatMulInteger of ONNX are read: the scale would be fused into the integers, and throws."""
    x = parameter([2, 8, 4, 4])
    data = opset1.convert(opset1.convert(quantized(x, -128, 127), "i8"), "i32")
    data = opset1.subtract(data, opset1.convert(const(3, "i8"), "i32"))
    stored = np.random.default_rng(0).integers(-31, 32, (4, 8, 1, 1) if kind == "Convolution" else (4, 4))
    weights = opset1.convert(const(stored, "i8"), "i32")
    if kind == "Convolution":
        layer = opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    else:
        layer = opset1.matmul(data, weights, False, False)
    scale = const(np.linspace(0.01, 0.02, 4).reshape((1, 4, 1, 1) if kind == "Convolution" else (4,)))
    net = model(opset1.multiply(opset1.convert(layer, "f32"), scale), x)
    inputs = [np.random.default_rng(1).integers(-128, 128, (2, 8, 4, 4)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [simulate(net, core)(inputs)[0]])


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize("shape", [(1, 6, 12), (2, 3, 6, 12)], ids=["rows", "heads"])
def test_an_attention_whose_result_is_quantized_by_rows_or_heads(core, infer, shape, lpt):
    """The product that it ends with would be given scales of columns, and throws; with the plugin's own LPT alone, too."""
    query, key = (parameter(shape, name=name) for name in "qk")
    data = [quantized(each, -2.56, 2.54).output(0) for each in (query, key)]
    mixed = NodeFactory("opset13").create("ScaledDotProductAttention", [*data, data[1]], {"causal": False})
    highest = np.linspace(0.5, 1.27, shape[1]).reshape(1, shape[1], *[1] * (len(shape) - 2))
    ends = [const(-highest), const(highest)]
    net = model(opset1.fake_quantize(mixed, *ends, *ends, 255), [query, key])
    inputs = inputs_of(net)
    found, expected = infer(drop_in(net, core), inputs, lpt), simulate(net, core)(inputs)[0]
    assert_close(found, [expected], level=1.01 * 2 * 1.27 / 254, share=0.05)


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_a_scale_before_a_layer_that_stays_in_float(core, infer, lpt):
    """MultiplyConvolutionFusion would take the scale into the float weights and let the layer read integers."""
    x = parameter([1, 8, 6, 6])
    shared = quantized(x, 0, 2.55)
    weights = const(np.random.default_rng(0).standard_normal((8, 8, 1, 1)))
    net = model([convolution(shared, 8), opset1.convolution(shared, weights, [1, 1], [0, 0], [0, 0], [1, 1])], x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "NO"))


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_scales_by_channel_before_a_transposed_convolution_that_stays_in_float(core, infer, lpt):
    """The scales would be taken into the weights, and the layer read integers."""
    x = parameter([1, 8, 6, 6])
    highest = np.linspace(1, 2, 8).reshape(1, 8, 1, 1)
    shared = opset1.fake_quantize(x, *(const(end) for end in (0 * highest, highest) * 2), 256)
    layer = opset1.convolution_backprop_data(shared, int8_weights([8, 4, 2, 2], axis=1), [2, 2])
    net = model([depthwise(shared), layer], x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "NO"))


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_a_scale_before_a_constant_that_is_added(core, infer, lpt):
    """The plugin's own LPT would subtract the constant in the integer type."""
    x = parameter([1, 16, 1, 3])
    shared = quantized(x, -1.28, 1.27)
    shifted = opset1.subtract(shared, const(np.random.default_rng(0).uniform(-1, 1, (1, 16, 1, 1))))
    net = model([shifted, opset1.matmul(shared, int8_weights([4, 3]), False, True)], x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "NO"))


def test_integers_that_only_a_shift_along_the_last_axis_reads(core, infer):
    """They would be stored, and read again, for nothing."""
    x = parameter([1, 3, 4, 4])
    low, high = (np.float32(ends).reshape(1, 4, 1, 1) for ends in ((-1.3, -2, -1.2, -1.1), (1.5, 1, 1.4, 1.7)))
    weights = const(np.random.default_rng(0).standard_normal((4, 3, 1, 1)))
    layer = opset1.convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    quantize = opset1.fake_quantize(layer, *(const(end) for end in (low, high) * 2), 255)
    net = model(opset1.add(quantize, const(np.linspace(0.5, 2, 4).reshape(1, 1, 1, 4))), x)
    inputs, lowered = inputs_of(net), drop_in(net, core)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))
    executed = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})).executed
    assert {layer.output_precision for layer in executed} == {"f32"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(-1, 6, 16), (2, 6, 16), (-1, 16)], ids=str)
def test_a_bias_that_is_quantized_apart_from_its_product(core, by_form, form, shape):
    """As ONNX Runtime does: what it gives stays in the layer, and is not stored, converted and read by another."""
    x = parameter(shape)
    weights = opset1.transpose(int8_weights([8, 16]), const([1, 0], "i64"))
    product = quantized(opset1.matmul(quantized(x, -1.2, 1.3), weights, False, False), -1.5, 1.7)
    biased = quantized(opset1.add(product, const(np.linspace(-0.5, 0.7, 8))), -2.1, 1.9)
    net = model(opset1.matmul(biased, int8_weights([4, 8], seed=1), False, True), x)
    data = np.random.default_rng(0).standard_normal((2, *shape[1:])).astype(np.float32)
    for batch in (1, 2) if shape[0] == -1 else (2,):
        found, expected = (by_form(net, [data[:batch]], *more) for more in ((form,), ()))
        assert_close([found], [expected], level=0.04 * np.abs(expected).max(), share=1)
    layers = ovlpt.execution_types(ovlpt.compile_model(net, core=core, properties=EXACT))
    assert not {"Convert", "Eltwise"} & {layer.layer_type for layer in layers}
    assert len(weighted(layers)) == 2


@pytest.mark.parametrize("low", [-1.28, -1.0], ids=["symmetric", "zero point"])
def test_integers_that_only_a_dequantization_reads(core, infer, low):
    """FakeQuantizeMulFusion would write real values as integers."""
    x = parameter([1, 3, 2, 4])
    high = low + np.array([2.55, 1.5, 0.8], np.float32).reshape(1, 3, 1, 1)
    ends = [const(np.full((1, 3, 1, 1), low)), const(high)]
    net = model(opset1.sigmoid(opset1.fake_quantize(x, *ends, *ends, 256)), x)
    inputs = inputs_of(net)
    lowered = drop_in(net.clone(), core)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"))
    quantize = next(node for node in lowered.get_ops() if node.get_type_name() == "FakeQuantize")
    assert quantize.get_output_element_type(0).get_type_name() == "f32"


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_a_clamp_that_the_next_quantization_makes_needless(core, infer, lpt):
    """Left out by the plugin, it would let the FakeQuantize report the integers' type."""
    x = parameter([1, 3, 8, 8])
    first = quantized(x, -2.48, 2.26)
    net = model(opset1.matmul(first, quantized(opset1.clamp(first, -1.0, 1.0), -0.733, 0.727), False, False), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "YES"))


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize("count", [1, 2])
def test_relus_before_a_quantization(core, infer, count, lpt):
    """ReluFakeQuantizeFusion would make a FakeQuantize that reports the type of its data."""
    x = parameter([1, 2, 6, 8])
    data = quantized(x, -4.0, 3.96875)
    for _ in range(count):
        data = opset1.relu(data)
    net = model(quantized(data, 0, 2.75, levels=16), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "YES"))


THERE_AND_BACK = {
    "unsqueezed": lambda value: opset1.squeeze(opset1.unsqueeze(value, const(1, "i64")), const(1, "i64")),
    "reshaped": lambda value: opset1.reshape(
        opset1.reshape(value, const([0, -1], "i64"), True), const([1, 2, 6, 8], "i64"), False
    ),
    "transposed": lambda value: opset1.transpose(
        opset1.transpose(value, const([0, 2, 3, 1], "i64")), const([0, 3, 1, 2], "i64")
    ),
}


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize("move", THERE_AND_BACK.values(), ids=THERE_AND_BACK)
def test_a_relu_and_what_changes_nothing_before_a_quantization(core, infer, move, lpt):
    """As above, once the plugin has dropped what lies between."""
    x = parameter([1, 2, 6, 8])
    net = model(quantized(move(opset1.relu(quantized(x, -4.0, 3.96875))), 0, 2.75, levels=16), x)
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs, lpt), infer(net, inputs, "YES"))


def test_a_relu_that_another_reads_than_a_quantization(core, infer):
    """The layer before it takes it in."""
    x = parameter([-1, 8, 8, 8])
    activated = opset1.relu(convolution(quantized(x, -1, 1.55), 8, bias=True))
    net = model(opset1.concat([activated, convolution(quantized(activated, 0, 2), 8, seed=1)], 1), x)
    inputs = [np.random.default_rng(0).uniform(-1, 1.5, (1, 8, 8, 8)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    layers = ovlpt.execution_types(compiled, inputs).executed
    assert not [layer for layer in layers if layer.layer_type in ("Eltwise", "Subgraph")]
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "YES"))


def test_a_scale_by_channel_before_an_interval_of_open_sizes(core, infer):
    """The plugin takes the scale into the interval, and the first channel's for all."""
    x = parameter([1, 3, -1, -1])
    layer = opset1.convolution(quantized(x, 0, 2.55), int8_weights((4, 3, 2, 2)), [1, 1], [0, 0], [0, 0], [1, 1])
    factors = np.float32([-1, -2, -4, -8]).reshape(1, 4, 1, 1)
    net = model([quantized(opset1.multiply(layer, const(factors)), -4, 4), opset1.softmax(layer, 3)], x)
    inputs = [np.random.default_rng(0).uniform(0, 3, (1, 3, 6, 6)).astype(np.float32)]
    expected = np.clip(infer(model([layer], x), inputs, "NO")[0] * factors, -4, 4)
    assert np.abs(infer(drop_in(net, core), inputs)[0] - expected).max() < 0.05


def test_a_shift_by_channel_after_a_layer_with_several_readers_of_open_sizes(core, infer):
    """It is no bias of the layer then, and the plugin takes it into the interval, the first channel's for all."""
    x = parameter([1, 3, -1, -1])
    weights = const(np.random.default_rng(1).standard_normal((4, 3, 1, 1)))
    layer = opset1.convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    shifts = np.float32([-1, 2, 0.5, -2]).reshape(1, 4, 1, 1)
    net = model([quantized(opset1.add(layer, const(shifts)), -4, 4), layer], x)
    inputs = [np.random.default_rng(0).uniform(-1, 1, (1, 3, 6, 6)).astype(np.float32)]
    expected = np.clip(infer(model([layer], x), inputs, "NO")[0] + shifts, -4, 4)
    assert np.abs(infer(drop_in(net, core), inputs)[0] - expected).max() < 0.05


def _less(data, constant):
    return opset1.subtract(constant, data)


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply, opset1.subtract, _less])
@pytest.mark.parametrize("quantizes", ["nothing", "weights", "both"])
def test_a_constant_for_each_head_after_a_product_of_open_sizes(core, infer, operation, quantizes):
    """There are as many heads as columns: the plugin takes it for one of the columns."""
    x, rng = parameter([1, 8, -1, 6]), np.random.default_rng(0)
    data, weights = quantized(x, -2.56, 2.54), const(rng.uniform(-0.4, 0.4, (8, 6)))
    if quantizes != "nothing":
        weights = quantized(weights, -1, 127 / 128)
    product = opset1.matmul(data if quantizes == "both" else x, weights, False, True)
    by_head = operation(product, const(rng.uniform(0.5, 2, (1, 8, 1, 1))))
    net = model([by_head, data], x)
    inputs = [rng.standard_normal((1, 8, 5, 6)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([1, 8, 5, 6])
    assert_close(infer(drop_in(net, core), inputs), infer(closed, inputs, "NO"))


@pytest.mark.parametrize("columns", [2, 8])
@pytest.mark.parametrize("form", FORMS)
def test_a_constant_for_each_head_less_a_product_of_two_tensors(by_form, form, columns):
    """The plugin throws, or takes it for one of the columns."""
    rng = np.random.default_rng(0)
    x, y = (parameter([1, 8, rows, 6], name=name) for rows, name in ((5, "x"), (columns, "y")))
    product = opset1.matmul(x, y, False, True)
    net = model(quantized(opset1.subtract(const(rng.uniform(0.5, 2, (1, 8, 1, 1))), product), -4, 4.1), [x, y])
    inputs = [rng.standard_normal(tuple(port.shape)).astype(np.float32) for port in net.inputs]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.04, share=0.01)


@pytest.mark.parametrize("size", [1, 6])
def test_scale_and_shift_by_channel_of_integers_before_an_interval_of_open_sizes(core, infer, size):
    """A branch that is normalized alone: one layer, no FakeQuantize of f32 with a Reorder before and after it."""
    x, rng = parameter([-1, 8, -1, -1]), np.random.default_rng(0)
    data = quantized(opset1.relu(convolution(quantized(x, -1.28, 1.27), 8)), 0, 2.55)
    scale, shift = (const(rng.uniform(-1.5, 1.5, (1, 8, 1, 1))) for _ in range(2))
    normal = quantized(opset1.add(opset1.multiply(data, scale), shift), -2.56, 2.54)
    total = opset1.add(normal, quantized(convolution(data, 8, seed=1), -2.56, 2.54))
    net = model(convolution(quantized(opset1.relu(total), 0, 5.1), 8, seed=2), x)
    inputs = [rng.uniform(-1, 1, (3, 8, size, size)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([3, 8, size, size])
    assert_close(infer(drop_in(net, core), inputs), infer(closed, inputs, "NO"), level=5.1 / 255, share=0.1)
    mine, stock = (
        ovlpt.execution_types(compiled, inputs).executed
        for compiled in (ovlpt.compile_model(net, core=core, properties=EXACT), core.compile_model(net, "CPU", EXACT))
    )
    assert len(mine) <= len(stock)


def _padded_by_nothing(data):
    return opset1.pad(data, const([0] * 3, "i64"), const([0] * 3, "i64"), "constant", const(0.5))


def _transposed_by_nothing(data):
    return opset1.transpose(data, const([0, 1, 2], "i64"))


def _concat_of_one(data):
    return opset1.concat([data], 1)


@pytest.mark.parametrize("idle", [_padded_by_nothing, _transposed_by_nothing, _concat_of_one])
def test_a_scale_by_channel_before_what_does_nothing_of_open_sizes(core, infer, idle):
    """The plugin drops it, and then takes the first channel's scale for all."""
    x = parameter([1, 6, -1])
    data = quantized(x, -1.28, 1.27)
    scaled = opset1.multiply(data, const(np.linspace(0.5, 2, 6).reshape(1, 6, 1)))
    net = model([quantized(idle(scaled), -3.75, 2.625), data], x)
    inputs = [np.random.default_rng(0).standard_normal((1, 6, 12)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([1, 6, 12])
    assert_close(infer(drop_in(net, core), inputs), infer(closed, inputs, "NO"), level=6.4 / 255, share=0.1)


def test_a_scale_by_channel_before_a_transposed_quantization_of_open_sizes(core, infer):
    """The FakeQuantize would move up through the Transpose, and take the first channel's scale for all the others."""
    x = parameter([1, 6, -1])
    data = quantized(x, -1.28, 1.27)
    scaled = opset1.multiply(data, const(np.linspace(0.5, 2, 6).reshape(1, 6, 1)))
    net = model([quantized(opset1.transpose(scaled, const([0, 2, 1], "i64")), -3.75, 2.625), data], x)
    inputs = [np.random.default_rng(0).standard_normal((1, 6, 12)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([1, 6, 12])
    assert_close(infer(drop_in(net, core), inputs), infer(closed, inputs, "NO"), level=6.4 / 255, share=0.1)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_an_interval_along_another_axis_than_the_channels(core, infer, is_open, transposed):
    """The plugin reads what lies after the interval, or throws, and with its own LPT, too."""
    x = parameter([1, 6, -1 if is_open else 5])
    normal = opset6.mvn(x, const([2], "i64"), True, 1e-6, "inside_sqrt")
    data = opset1.transpose(normal, const([0, 2, 1], "i64")) if transposed else normal
    high = np.linspace(1, 2, 5, dtype=np.float32).reshape((1, 5, 1) if transposed else (1, 1, 5))
    net = model(opset1.fake_quantize(data, *(const(end) for end in (-high, high) * 2), 256), x)
    inputs = [np.random.default_rng(0).standard_normal((1, 6, 5)).astype(np.float32)]
    (values,) = infer(model(data, x), inputs, "NO")
    step = 2 * high / 255
    expected = np.clip(np.rint((values + high) / step), 0, 255) * step - high
    assert_close(infer(drop_in(net, core), inputs), [expected], level=4 / 255, share=0.05)


@needs_avx2
def test_an_addition_before_a_transposed_quantization_of_open_sizes(core, infer):
    """The Transpose would move after the reduction, and the channels to an axis that has no kernel."""
    x = parameter([-1, 3, 4, 8])
    moved = opset1.add(opset1.transpose(x, const([0, 2, 3, 1], "i64")), const(np.ones((1, 4, 1, 1), np.float32)))
    by_channel = [const(end * np.arange(1, 5, dtype=np.float32).reshape(1, 4, 1, 1)) for end in (-1, 1)]
    quantize = opset1.fake_quantize(moved, *by_channel, const(np.float32(-2)), const(np.float32(2)), 256)
    net = model(opset1.reduce_min(quantize, const([3], "i64"), False), x)
    inputs = [np.random.default_rng(0).standard_normal((2, 3, 4, 8)).astype(np.float32)]
    closed = net.clone()
    closed.reshape([2, 3, 4, 8])
    assert_close(infer(drop_in(net, core), inputs), infer(closed, inputs, "NO"), level=4 / 255)


def test_a_product_of_two_tensors_that_is_quantized_by_heads(core, infer):
    """The plugin takes an interval by heads for a per-column one, and throws."""
    x = parameter([-1, 7, -1, -1])
    product = opset1.multiply(opset1.matmul(x, x, False, True), const(np.linspace(1, 3, 7).reshape(1, 7, 1, 1)))
    net = model(opset1.fake_quantize(product, *(const(np.float32(end)) for end in (-1, 20, -1, 20)), 255), x)
    inputs = [np.random.default_rng(0).standard_normal((1, 7, 7, 8)).astype(np.float32)]
    assert_close(infer(drop_in(net, core), inputs), infer(net, inputs, "NO"), level=21 / 254, share=0.01)


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
def test_weights_of_a_strided_layer_that_stays_in_float(core, how):
    """Restored by the plugin; with several streams the layer then read other numbers, once in twenty times."""
    x, ones, twos = parameter([1, 4, 3, 4, 8]), [1, 1, 1], [2, 2, 2]
    stored = const(np.random.default_rng(0).integers(-60, 61, (16, 4, *ones)), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(0.03))
    layer = opset1.convolution(x, weights, twos, ones, ones, ones)
    found = how(model([layer, quantized(x, -1, 1.5)], x), core=core)
    (lowered,) = (node for node in found.get_ops() if node.get_type_name() == "GroupConvolution")
    assert lowered.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
def test_weights_of_a_float_product_of_transposed_data(core, how):
    """Restored by the plugin; with several streams the layer read other numbers, once in four times."""
    x = parameter([-1, 8, -1, -1])
    weights = opset1.multiply(opset1.convert(const([[-60, 7, 60]], "i8"), "f32"), const(0.03))
    product = opset1.matmul(x, weights, True, False)
    product.set_friendly_name("product")
    found = how(model([product, quantized(x, -1, 1.5)], x), core=core)
    (lowered,) = (node for node in found.get_ops() if node.get_friendly_name() == "product")
    assert lowered.input_value(1).get_node().get_type_name() == "Constant"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_factor_after_a_float_product_of_a_vector(by_form, form, first):
    """It threw, as does the plugin with a vector of floats; stock's is a FakeQuantize for longer."""
    x = parameter([1, 7, 7, 8])
    ends = [const(sign * np.linspace(0.5, 2, 8)) for sign in (-1, 1)] * 2
    weights = opset1.fake_quantize(const(np.linspace(-1, 1, 8)), *ends, 256)
    pair = [const(0.4), opset1.matmul(quantized(x, -1.2, 2.2), weights, False, False)]
    net = model(opset1.multiply(*pair[:: 1 if first else -1]), x)
    inputs = inputs_of(net)
    np.testing.assert_allclose(by_form(net, inputs, form), by_form(net, inputs), atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_what_differs_by_column_less_a_float_product_of_a_vector_of_open_sizes(by_form, form):
    """Of two rules for such products the second was not followed: it threw."""
    x = parameter([-1, 4, -1, -1, 4])
    weights = opset1.multiply(
        opset1.convert(const([52, -52, -50, -40], "i8"), "f32"), const([0.02, 0.005, 0.002, 0.005])
    )
    product = opset1.matmul(quantized(x, -2, 2), weights, False, False)
    net = model(opset1.subtract(const([0.4, -0.2, 0.7, -0.9]), product), x)
    inputs = [np.random.default_rng(0).uniform(-2, 2, (1, 4, 3, 4, 4)).astype(np.float32)]
    np.testing.assert_allclose(by_form(net, inputs, form), by_form(net, inputs), atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(-1, 12), (1, -1, 12)], ids=["rank_2", "rank_3"])
@pytest.mark.parametrize("last", [opset1.add, opset1.multiply], ids=["shift", "scale"])
@pytest.mark.parametrize("by_row", [True, False], ids=["by_row", "of_two"])
def test_what_differs_by_column_where_their_number_is_open(by_form, form, sizes, last, by_row):
    """It threw, as in float. Stock runs the scale of rows between."""
    x, lead = parameter(sizes), [1] * (len(sizes) - 2)
    data = quantized(x, 0, 2.55)
    stored = const(np.random.default_rng(0).integers(-60, 61, (*lead, 8, 12)), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(np.linspace(0.01, 0.03, 8).reshape(8, 1)))
    product = opset1.matmul(weights if by_row else data, data, False, True)
    values = [np.random.default_rng(1).uniform(0, 2.5, (*lead, 2, 12)).astype(np.float32)]
    net = model(last(product, const([0.5, -2.0])), x)
    fixed = net.clone()
    fixed.reshape(list(values[0].shape))
    expected = by_form(fixed, values)
    assert_close([by_form(net, values, form)], [expected], level=0.02 * float(np.abs(expected).max()), share=1)


def test_an_int8_product_of_two_tensors_that_is_quantized_by_rows(core, infer):
    """As above; the plugin's own LPT leaves it a model that throws."""
    x, y = parameter([1, 5, 8]), parameter([1, 8, 6], name="y")
    product = opset1.matmul(quantized(x, -2.56, 2.54), quantized(y, -10.24, 10.16), False, False)
    highest = np.linspace(1, 5, 5).reshape(1, 5, 1)
    quantize = opset1.fake_quantize(product, *(const(end) for end in (-highest, highest) * 2), 256)
    net = openvino.Model([opset1.result(quantize)], [x, y], "rows")
    simulated = openvino.Model([opset1.result(node) for node in (quantize, product)], [x, y], "apart")
    inputs = inputs_of(net)
    assert_close(infer(drop_in(net, core), inputs), infer(simulated, inputs, "NO")[:1], level=10 / 255, share=0.1)


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("columns", [8, -1], ids=["fixed", "open"])
@pytest.mark.parametrize("by_weights", [True, False], ids=["by_weights", "of_two"])
def test_a_transpose_before_what_a_matmul_and_a_reduction_read(core, infer, columns, by_weights, precision):
    """Moved after both, the Transpose went into a MatMul that was no longer relaxed."""
    x = parameter([2, 5, columns])
    turned = opset1.transpose(x, const(np.array([0, 2, 1]), "i64"))
    data = opset1.fake_quantize(turned, *(const(np.float32(end)) for end in (-5.08, 5.08) * 2), 255)
    stored = const(np.random.default_rng(0).integers(-63, 64, (5, 7)), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(0.01))
    pair = (data, weights, False) if by_weights else (quantized(opset1.relu(turned), 0, 2), data, True)
    product = opset1.matmul(*pair[:2], False, pair[2])
    mean = opset1.reduce_mean(data, const(np.array([2]), "i64"), True)
    net = Form(precision).apply(openvino.Model([opset1.result(product), opset1.result(mean)], [x], "transposed"))
    values, fixed = (
        np.random.default_rng(0).standard_normal((2, 5, 8)).astype(f"f{int(precision[1:]) // 8}"),
        net.clone(),
    )
    fixed.reshape([2, 5, 8])
    level = 1e-4 if precision == "f32" else 0.05
    assert_close(
        infer(drop_in(net, core), [values]), infer(fixed, [values], "NO"), level=level, share=precision == "f16"
    )


@pytest.mark.parametrize("sizes", [(1, 8, 1), (2, 8, 6), (2, -1, 6)])
@pytest.mark.parametrize("activation", [None, opset1.relu], ids=["alone", "relu"])
def test_data_quantized_by_rows_times_a_vector_before_a_quantization(core, infer, sizes, activation):
    """The scales of rows, whose axis is the last one, were read as one: that of the first row."""
    x = parameter(sizes)
    high = const(np.linspace(0.5, 2, 8).reshape(1, 8, 1))
    data = opset1.fake_quantize(x, const(0.0), high, const(0.0), high, 256)
    stored = const(np.random.default_rng(0).integers(20, 64, sizes[2]), "i8")
    weights = opset1.multiply(opset1.convert(stored, "f32"), const(0.01))
    product = opset1.matmul(data, weights, False, False)
    net = model(quantized(activation(product) if activation else product, -3, 3), x)
    values, fixed = [np.random.default_rng(0).uniform(0, 2, (sizes[0], 8, sizes[2])).astype(np.float32)], net.clone()
    fixed.reshape(list(values[0].shape))
    assert_close(infer(drop_in(net, core), values), infer(fixed, values, "NO"), level=6 / 255)


def test_an_interval_by_column_after_a_relu_in_f16(core, infer):
    """In a pipeline of one's own its constants were f32 beside f16, which throws."""
    x = parameter([12, 6])
    low = np.linspace(-0.5, 0, 4).reshape(1, 4)
    product = opset1.matmul(quantized(x, -2, 2), int8_weights((4, 6)), False, True)
    shifted = opset1.relu(opset1.add(product, const(np.linspace(-1, 1, 4).reshape(1, 4))))
    data = opset1.fake_quantize(shifted, *(const(end) for end in (low, low + 3, 0.0, 3.0)), 256)
    net = model(opset1.matmul(data, int8_weights((5, 4)), False, True), x)
    inputs = [values.astype(np.float16) for values in inputs_of(net)]
    half = Form("f16").apply(net)
    assert_close(infer(drop_in(half, core), inputs), infer(half, inputs, "NO"), level=0.05)


def test_a_shift_by_channel_before_a_quantization_to_integers_of_half_precision(core):
    """A branch of a Concat keeps the type of its integers where its interval comes to differ between channels."""
    x = opset1.parameter(openvino.PartialShape([-1, 2, -1, 4]), np.float16, name="x")
    product = opset1.matmul(x, opset1.constant(np.eye(4, dtype=np.float16)), False, False)
    shift = np.float16([-0.5, 1]).reshape(1, 2, 1, 1)
    ends = [opset1.constant(np.float16(end)) for end in (-4, 4)]
    joined = opset1.concat([opset1.add(product, opset1.constant(shift)), product], 1)
    quantize = opset1.fake_quantize(joined, *ends, *ends, 256)
    net = openvino.Model([opset1.result(quantize)], [x], "half")
    data = np.random.default_rng(0).standard_normal((1, 2, 6, 4)).astype(np.float16)
    compiled = core.compile_model(drop_in(net, core), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    (found,) = compiled([data]).values()
    expected = np.concatenate([data + shift, data], axis=1)
    assert np.abs(found - np.clip(expected, -4, 4)).max() < 8 / 255


@pytest.mark.parametrize("lpt", ["NO", "YES"])
def test_float_layers_after_a_quantization_of_half_precision(core, lpt):
    """It would report f16 where the other inputs of its readers turn to f32."""
    x = opset1.parameter([1, 8, 6, 6], np.float16, name="x")
    generator = np.random.default_rng(0)
    ends = [opset1.constant(np.float16(end)) for end in (-1, 1.55)]
    quantize = opset1.fake_quantize(x, *ends, *ends, 256)
    filters = opset1.constant(generator.uniform(-1, 1, (8, 8, 1, 1)).astype(np.float16))
    layer = opset1.convolution(quantize, filters, [1, 1], [0, 0], [0, 0], [1, 1])
    product = opset1.matmul(quantize, opset1.constant(np.eye(6, dtype=np.float16)), False, False)
    net = openvino.Model([opset1.result(layer), opset1.result(product)], [x], "half")
    data = generator.standard_normal((1, 8, 6, 6)).astype(np.float16)
    compiled = core.compile_model(drop_in(net, core), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": lpt})
    found = list(compiled([data]).values())
    assert np.abs(found[1] - np.clip(data, -1, 1.55)).max() < 2.55 / 255
    expected = np.einsum("oc,nchw->nohw", filters.data[:, :, 0, 0].astype(np.float32), found[1].astype(np.float32))
    assert np.abs(found[0] - expected).max() < 2e-2


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_half_precision(core, sign):
    """A relaxed Add of f16 data and f32 constants before another Add, or a constant less it, would be merged and throw."""
    x = opset1.parameter([1, 8, 6, 6], np.float16, name="x")
    half = [opset1.constant(np.float16(value)) for value in (-0.7, -4, 4)]
    first = opset1.add(x, half[0])
    quantize = opset1.fake_quantize(first, *half[1:], *half[1:], 256)
    other = opset1.constant(np.arange(6, dtype=np.float16).reshape(1, 1, 1, 6))
    second = opset1.add(first, other) if sign == 1 else opset1.subtract(other, first)
    net = openvino.Model([opset1.result(second), opset1.result(quantize)], [x], "half")
    data = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float16)
    found = list(ovlpt.compile_model(net, core=core, properties=EXACT)([data]).values())
    assert np.allclose(found[0], sign * (data - np.float16(0.7)) + np.arange(6), atol=2e-2)


@pytest.mark.parametrize("between", [lambda value: value, lambda value: opset1.clamp(value, -0.9, 3)])
def test_a_product_quantized_by_rows(core, infer, between):
    """A hidden bias would be taken for that of rows."""
    x = parameter([1, 12, 16])
    product = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([12, 16]), False, True)
    biased = opset1.add(product, const(np.linspace(-1, 1, 12)))
    ends = [const(sign * np.linspace(0.2, 1, 12).reshape(1, 12, 1)) for sign in (-1, 1)]
    net = model(opset1.fake_quantize(between(biased), *ends, *ends, 256), x)
    inputs = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=False)
    assert_close(infer(lowered, inputs), infer(net, inputs, "NO"), level=2 / 255, share=1e-2)


def test_an_interval_by_rows_stays_one_by_rows_in_a_saved_model(core, infer):
    """With a bias by channel folded in, it would have as many ends as the data has elements."""
    x = parameter([1, 12, 16])
    product = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([8, 16]), False, True)
    biased = opset1.add(product, const(np.linspace(-1, 1, 8)))
    ends = [const(sign * np.linspace(0.2, 1, 12).reshape(1, 12, 1)) for sign in (-1, 1)]
    net = model(opset1.fake_quantize(biased, *ends, *ends, 256), x)
    saved = ovlpt.transform(net, core=core)
    (end,) = (
        node.input_value(1)
        for node in saved.get_ops()
        if node.get_type_name() == "FakeQuantize" and node.input_value(0).get_node().get_type_name() != "Parameter"
    )
    assert list(end.get_shape()) == [1, 12, 1]
    inputs = inputs_of(net)
    assert_close(infer(saved, inputs), infer(net, inputs, "NO"), level=2 / 255, share=1e-2)


@pytest.mark.parametrize("shape", [(6, 12), (1, 6, 12), (1, 1, 6, 12), (1, 1, 1, 6, 12)])
def test_integer_weights_of_a_product_in_float(core, infer, shape):
    """The plugin keeps them compressed, and throws where they have more than three axes."""
    x = parameter([2, 3, 2, 4, 6])
    net = model(opset1.matmul(x, int8_weights(shape, axis=len(shape) - 1), False, False), x)
    inputs, values = inputs_of(net), folded_constant(net.get_results()[0].input_value(0).get_node().input_value(1))
    (found,) = infer(drop_in(net, core), inputs)
    assert np.abs(found - inputs[0] @ values).max() < 0.05  # 2024.6 quantizes the data of compressed weights


@pytest.mark.parametrize("sizes", [(1, 20, 30), (-1, -1, -1)], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("streams", [1, 3])
def test_fake_quantized_weights_of_a_layer_in_float_have_the_simulations_bits(core, sizes, streams):
    """Computed by the reference, they differed in their last bits, which decided more ties than with the plugin's own LPT."""
    x, random = parameter([sizes[0], 16, *sizes[1:]]), np.random.default_rng(0)
    floats, end = const(random.uniform(-2, 2, (16, 1, 1, 5, 5))), random.uniform(0.2, 4, (16, 1, 1, 1, 5))
    weights = opset1.fake_quantize(floats, const(-end), const(end), const(-1.08 * end), const(1.08 * end), 255)
    net = model(opset1.group_convolution(quantized(x, -0.3, 0.9), weights, [1, 1], [2, 2], [2, 2], [1, 1]), x)
    inputs = [random.uniform(-0.3, 0.9, (1, 16, 20, 30)).astype(np.float32)]
    truth, properties = simulate(net, core)(inputs)[0], {**EXACT, "NUM_STREAMS": str(streams)}
    stock = core.compile_model(net, "CPU", properties)(inputs)[0]
    found = ovlpt.compile_model(net, core=core, properties=properties)(inputs)[0]
    assert np.square(found - truth).mean() <= 1.1 * np.square(stock - truth).mean()


@pytest.mark.parametrize("shape", [(12,), (4, 12, 5), (1, 4, 12, 5)], ids=["a vector", "matrices", "heads"])
def test_integer_weights_that_no_kernel_reads_compressed(core, infer, shape):
    """The plugin would restore them in layers of their own, in some runs after they were read."""
    x = parameter([-1, 4, -1, 12])
    scales = const(np.full((1,) * len(shape), 0.01, np.float32))
    integers = np.random.default_rng(0).integers(-60, 61, shape).astype(np.int8)
    weights = opset1.multiply(opset1.convert(opset1.constant(integers), "f32"), scales)
    other = opset1.matmul(quantized(x, 0, 2.55), int8_weights([12, 3], 1), False, False)
    net = drop_in(model([opset1.matmul(x, weights, False, False), other], x), core)
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 4, 3, 12)).astype(np.float32)]
    factors = [node.input_value(1) for node in net.get_ops() if node.get_type_name() == "MatMul"]
    (real,) = (value.get_node() for value in factors if value.get_element_type().is_real())
    assert real.get_type_name() == "Constant"
    found = infer(net, inputs)[0]
    assert np.abs(found - inputs[0] @ (integers * 0.01)).max() < 0.05


def test_a_mask_in_f16(core, infer):
    """The Convert of the mask is read past; what is taken from it stays in f16."""
    x = parameter([1, 8])
    mask = opset1.convert(opset1.greater(quantized(x, -1, 1.1), const(0.0)), "f32")
    net = model(opset1.multiply(opset1.subtract(mask, const(1.0)), const(100.0)), x)
    values = np.linspace(-0.9, 0.9, 8, dtype=np.float16)[None]
    (found,) = infer(drop_in(Form("f16").apply(net), core), [values])
    assert (found == np.where(values > 0, 0, -100)).all()


def test_a_quantization_to_many_levels_of_an_input_in_f16(core):
    """The plugin drops the FakeQuantize; the product then read f16 and f32, and threw."""
    x = parameter([1, 8])
    wide = opset1.fake_quantize(x, const(-4.0), const(4.0), const(-4.0), const(4.0), 65536)
    weights = int8_weights([8, 8], 1)
    expected = np.linspace(-1, 1, 8)[None] @ folded_constant(weights.output(0))
    net = Form("f16").apply(model([opset1.matmul(wide, weights, False, False), wide], x))
    found = ovlpt.compile_model(net, "CPU", F32, core=core)([np.linspace(-1, 1, 8, dtype=np.float16)[None]])[0]
    assert np.abs(found - expected).max() < 0.01 * np.abs(expected).max()


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match='no lowering for device "TPU"'):
        PluginLowering("TPU")


def test_a_broadcast_that_settles_an_open_size(core, infer):
    """A Tile in its place leaves it open."""
    x = parameter([-1, 8, 1, 4])
    data = quantized(x, -0.6, 1.8)
    net = model([opset1.broadcast(data, const([1, 8, 3, 4], "i64")), convolution(data, 8)], x)
    lowered = ovlpt.transform(net, core=core)
    assert [each.get_partial_shape() for each in lowered.outputs] == [each.get_partial_shape() for each in net.outputs]
    inputs = [np.random.default_rng(0).uniform(-0.6, 1.8, (1, 8, 1, 4)).astype(np.float32)]
    assert_close(infer(lowered, inputs), infer(net, inputs), level=0.01, share=1)


def test_the_plugins_own_lpt_finds_nothing_to_do(core):
    """Transformed twice, a convolution would lose its zero point and run in float."""
    lowered = drop_in(one_convolution(-1.0, 1.55), core)
    layers = ovlpt.execution_types(core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "YES"}))
    assert [(layer.precision, layer.is_int8) for layer in weighted(layers)] == [("u8", True)]


def test_bias_and_quantization_are_part_of_a_deconvolution():
    x = parameter([1, 16, 6, 6])
    node = opset1.convolution_backprop_data(quantized(x, 0, 2.55), int8_weights([16, 8, 2, 2], axis=1), [2, 2])
    bias = opset1.add(node, const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)))
    bias.set_friendly_name("bias")
    after = quantized(opset1.relu(bias), 0, 6, name="quantize")
    compiled = ovlpt.compile_model(model(convolution(after, 8), x))
    (layer,) = [each for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Deconvolution"]
    assert {"bias", "quantize"} <= set(layer.original_names)


@pytest.mark.parametrize("own", ["YES", "NO"])
@pytest.mark.parametrize("port", range(3))
def test_an_attention_of_quantized_data_whose_shape_is_read(core, infer, own, port):
    """The shape is folded first, and the scale then fused into the FakeQuantize of integers, which throws."""
    tensors = [parameter([2, 3, 5, 4], name=name) for name in ("q", "k", "v")]
    read: list = list(tensors)
    read[port] = quantized(read[port], -2, 2, 255)
    attention = NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in read], {"causal": False}
    )
    net = model([attention, opset1.convert(opset1.shape_of(read[port]), "f32")], tensors)
    inputs = [np.random.default_rng(seed).uniform(-2, 2, (2, 3, 5, 4)).astype(np.float32) for seed in range(3)]
    assert_close(infer(drop_in(net, core), inputs, own), infer(net, inputs, "NO"))
