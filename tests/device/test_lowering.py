"""One test for each trap that the lowering avoids; those of single topics are in modules of their own."""

from __future__ import annotations

import numpy as np
import openvino
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt.device import PluginLowering, subprocess_call
from ovlpt.device.properties import F32
from ovlpt.graph.weights import folded_constant
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import RELEASE, Core, Manager, NodeFactory, opset1
from ovlpt.trace import InputError
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.lowered import FORMS, compiled_in, drop_in, weighted
from tests.networks import (
    const,
    convolution,
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


@pytest.mark.parametrize("own", ["YES", "NO"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_group_normalization_that_is_quantized_at_open_sizes(core, infer, groups, own):
    """In a pipeline of one's own nothing folds its scale and bias any more: the FakeQuantize took them, and read the first
    ones for all channels.
    """
    x, scale, bias = parameter([-1, 4, -1]), np.array([1.25, 0.6, 1.4, 0.3]), np.array([-0.3, 0.25, 0.5, 1.0])
    inputs = [each.output(0) for each in (x, const(scale), const(bias))]
    attributes = {"num_groups": groups, "epsilon": 1e-3}
    normalized = NodeFactory("opset12").create("GroupNormalization", inputs, attributes)
    net = model(quantized(normalized, -2.56, 2.54, 256), x)
    data = np.random.default_rng(0).normal(size=(2, 4, 6)).astype(np.float32)
    parts = data.reshape(2, groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-3)
    expected = np.clip(parts.reshape(data.shape) * scale[:, None] + bias[:, None], -2.56, 2.54)
    assert_close(infer(drop_in(net, core), [data], own), [expected], level=0.01 + 1e-5, share=1)


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


@pytest.mark.parametrize("sizes", [(1, 16, 2), (-1, 16, 2)], ids=["fixed", "open"])
def test_a_transpose_that_is_given_an_axis_before_a_layer(core, infer, sizes):
    """Without that axis, as the layer runs with a bias, the plugin fused the Transpose into a MatMul of integers."""
    x = parameter(sizes)
    turned = opset1.transpose(quantized(x, 0, 2.55), const([0, 2, 1], "i64"))
    data = opset1.unsqueeze(turned, const([2], "i64"))
    product = opset1.add(opset1.matmul(data, int8_weights([8, 16]), False, True), const(np.arange(8.0)))
    net = model(opset1.relu(product), x)
    inputs = [np.random.default_rng(0).uniform(0, 2.55, (1, 16, 2)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT, config=cpu.config())
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


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


@pytest.mark.parametrize("lpt", ["NO", "YES"])
@pytest.mark.parametrize("idle", ["Pad", "Transpose"])
def test_what_does_nothing_after_one_element_of_open_sizes(core, infer, idle, lpt):
    """The plugin drops it, and the scale after it would be fused into the layer."""
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
def test_a_scale_before_a_layer_that_stays_in_float(core, infer, lpt):
    """MultiplyConvolutionFusion would take the scale into the float weights and let the layer read integers."""
    x = parameter([1, 8, 6, 6])
    shared = quantized(x, 0, 2.55)
    weights = const(np.random.default_rng(0).standard_normal((8, 8, 1, 1)))
    net = model([convolution(shared, 8), opset1.convolution(shared, weights, [1, 1], [0, 0], [0, 0], [1, 1])], x)
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


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_transposed_convolution_that_several_read(core, by_form, form, axes, is_open):
    """As in vocoders: over one axis it runs in float, and what keeps fusions from it was a layer."""
    sizes, x = [12] * axes, parameter([-1, 16, *[-1] * axes] if is_open else [1, 16, *[12] * axes])
    weights = int8_weights([16, 8, *[4] * axes], axis=1)
    # unsigned: with AVX-512 but without VNNI the kernels halve the weights beside signed data
    layer = opset1.convolution_backprop_data(quantized(x, 0, 2.55), weights, [2] * axes)
    parts = [quantized(opset1.prelu(layer, const([0.1])), -0.5, 2), quantized(layer, -2, 1.984375)]
    kernel = int8_weights([8, 8, *[3] * axes])
    after = opset1.convolution(parts[0], kernel, *([1] * axes for _ in range(4)))
    net = model(opset1.add(after, parts[1]), x)
    lowered = ovlpt.transform(net, core=core)
    assert f"{layer.get_friendly_name()}/Guard" not in {node.get_friendly_name() for node in lowered.get_ops()}
    inputs = [np.random.default_rng(0).uniform(0, 2.5, (1, 16, *sizes)).astype(np.float32)]
    assert_close([by_form(net, inputs, form)], [by_form(net, inputs)], level=0.05, share=0.02)
