from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device.lowering.sharing import share_constants
from ovlpt.openvino_api import Model, opset1
from tests.conftest import EXACT, assert_close, inputs_of
from tests.lowered import drop_in
from tests.networks import const, convolution, model, parameter, quantized
from tools.fuzz.graphs import Form, Graph, Step, build


def of_kind(net, kind):
    return [node for node in net.get_ordered_ops() if node.get_type_name() == kind]


def sources(nodes, port):
    return {node.input_value(port).get_node().get_instance_id() for node in nodes}


def test_intervals_that_end_at_the_same_integers(core, infer):
    x = parameter([1, 16, 8, 8])
    net = model(convolution(quantized(convolution(quantized(x, 0, 2.55), 16), 0, 2.55), 16, seed=1), x)
    saved = ovlpt.transform(net, core=core)
    found = of_kind(saved, "FakeQuantize")
    assert [len(sources(found, port)) for port in range(5)] == [2, 2, 2, 1, 2]
    assert (
        len(sources([node.input_value(4).get_node() for node in found], 0)) == 1
    )  # a zero of its own is added to each
    inputs = inputs_of(net)
    compiled = core.compile_model(saved, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    kinds = [layer.layer_type for layer in ovlpt.execution_types(compiled).executed]
    assert kinds.count("FakeQuantize") <= 1  # that of the input
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


def test_equal_quantizations_of_a_tensor(core, infer):
    """The plugin joins them in memory; in a saved model it would not see that they are equal."""
    x = parameter([1, 16, 8, 8])
    data = opset1.sigmoid(x)
    layers = [convolution(quantized(data, 0, top), 16, seed=seed) for seed, top in enumerate((2.55, 2.55, 1.0))]
    net = Model([opset1.result(layer) for layer in layers], [x], "three")
    saved = ovlpt.transform(net, core=core)
    assert len(of_kind(saved, "FakeQuantize")) == 2
    in_memory = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    compiled = core.compile_model(saved, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert len(ovlpt.execution_types(compiled).executed) == len(ovlpt.execution_types(in_memory).executed)
    inputs = inputs_of(net)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


def test_orders_and_shapes():
    def there_and_back(value):
        moved = opset1.transpose(value, opset1.constant(np.array([0, 2, 1])))
        return opset1.reshape(moved, opset1.constant(np.array([2, 4, 3])), False)

    x = parameter([2, 4, 3])
    net = model(opset1.relu(there_and_back(opset1.relu(there_and_back(x)))), x)
    share_constants(net)
    assert len(sources(of_kind(net, "Transpose"), 1)) == len(sources(of_kind(net, "Reshape"), 1)) == 1
    assert len(of_kind(net, "Constant")) == 2


def test_a_constant_that_is_an_output_stays():
    x = parameter([2, 4, 3])
    orders = [opset1.constant(np.array([0, 2, 1])) for _ in range(2)]
    orders[1].set_friendly_name("order")
    net = Model([opset1.transpose(x, orders[0]), orders[1]], [x], "net")
    share_constants(net)
    assert [result.input_value(0).get_node().get_friendly_name() for result in net.get_results()][1] == "order"
    assert len(of_kind(net, "Constant")) == 2


def test_arrays_and_real_constants_stay():
    x = parameter([2, 4, 3])
    ends = [[np.full((1, 1, 1), end, np.float32) for end in (0, 1, 0, 1)] for _ in range(2)]
    value = x
    for low, high, output_low, output_high in ends:
        constants = (opset1.constant(each) for each in (low, high, output_low, output_high))
        value = opset1.multiply(opset1.fake_quantize(value, *constants, 256), opset1.constant(np.float32(2)))
    net = model(value, x)
    share_constants(net)
    assert len(of_kind(net, "Constant")) == 10


@pytest.mark.parametrize("how", [ovlpt.transform, drop_in], ids=lambda each: each.__name__)
@pytest.mark.parametrize("stored", ["once", "twice"])
@pytest.mark.parametrize("kind", ["convolution", "matmul"])
def test_equal_layers_of_open_sizes(core, infer, kind, stored, how):
    """The scale of one was applied to what the other gave, which then had it twice."""
    shape, open_shape = ([2, 8], [-1, 8]) if kind == "matmul" else ([1, 8, 6, 6], [1, 8, -1, -1])
    integers = np.random.default_rng(0).integers(-31, 32, (8, 8, 3, 3)[: 2 if kind == "matmul" else 4])

    def layer(data, weights):
        if kind == "matmul":
            return opset1.matmul(data, weights, False, True)
        return opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])

    x = parameter(open_shape)
    data = quantized(x, 0, 2)
    weights = [opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(0.01)) for _ in range(2)]
    first, second = (layer(data, each) for each in (weights if stored == "twice" else weights[:1] * 2))
    bias = const(np.linspace(-0.3, 0.3, 8).reshape([1, 8, 1, 1][: len(shape)]))
    net = model([opset1.add(first, bias), opset1.relu(second), opset1.sigmoid(second)], x)
    fixed = net.clone()
    fixed.reshape(shape)
    inputs = [np.random.default_rng(1).uniform(0, 2, shape).astype(np.float32)]
    assert_close(infer(how(net, core=core), inputs), infer(fixed, inputs, "NO"))


def test_equal_scales_of_half_floats(core):
    """Beside an If a model of f16 stays such: of two scales one reported f32 already, which compiling refused."""
    steps = (
        Step("Parameter", (), 1, (1, 8, 6, 6)),
        Step("FakeQuantize", ((0, 0),), 866036908, (1, 8, 6, 6)),
        Step("Reduce", ((1, 0),), 1692009600, (1, 8)),
        Step("Multiply", ((2, 0), (2, 0)), 4, (1, 8)),
        Step("If", ((0, 0),), 2003384803, (1, 8, 6, 6)),
    )
    net = build(Graph(steps, ((3, 0), (4, 0)), 0, Form("f16")))
    lowered = ovlpt.transform(net, core=core, native_only=True)
    assert [port.get_element_type().get_type_name() for port in lowered.outputs] == ["f16", "f16"]


@pytest.mark.parametrize("low", [0, -2.55], ids=["u8", "i8"])
@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_equal_scales_that_nothing_parts(core, infer, kind, low):
    """In a pipeline of one's own: the plugin joined them once the Tile was dropped, and rounded what was left to integers."""
    x, y = (parameter([1, 8], name=name) for name in "xy")
    data = quantized(x, low, 2.55, 255)
    parted = opset1.tile(data, const([1, 1], "i64"))
    meet = getattr(opset1, kind)
    net = model([meet(x, data), meet(parted, y)], [x, y])
    inputs = [np.random.default_rng(seed).uniform(-2.5, 2.5, (1, 8)).astype(np.float32) for seed in range(2)]
    assert_close(infer(drop_in(net, core), inputs, "NO"), infer(net, inputs, "NO"))
