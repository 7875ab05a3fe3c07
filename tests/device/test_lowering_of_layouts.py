"""The order in memory that a plugin gives to data: what the lowering does so that it is not changed again and again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt.graph.relaxed import keeps_types
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import MARKS_TYPES, Model, NodeFactory, opset1, opset6
from tests.conftest import EXACT, TRUTH, assert_close
from tests.networks import const, int8_weights, model, parameter, quantized

CHANNELS = 32


def patches_and_sums(rank: int, count: int, quantized_sums: bool = False) -> Model:
    """A convolution whose channels go to the last axis, and blocks of a normalization, a MatMul and a sum over there."""
    more, generator = rank - 2, np.random.default_rng(0)
    x = parameter([-1, 3, *[16] * more])
    weights = int8_weights([CHANNELS, 3, *[2] * more])
    patches = opset1.convolution(quantized(x, -3, 3), weights, [2] * more, [0] * more, [0] * more, [1] * more)
    patches = opset1.add(patches, const(generator.standard_normal((1, CHANNELS, *[1] * more))))
    total = opset1.transpose(patches, const([0, *range(2, rank), 1], "i64"))
    attributes = {"eps": 1e-5, "normalize_variance": True, "eps_mode": "inside_sqrt"}
    for seed in range(count):
        total = quantized(total, -8, 8) if quantized_sums else total
        normal = NodeFactory("opset6").create("MVN", [total.output(0), const([-1], "i64").output(0)], attributes)
        product = opset1.matmul(quantized(normal, -3, 3), int8_weights([CHANNELS, CHANNELS], seed=seed), False, True)
        bias = const(generator.standard_normal([*[1] * (rank - 1), CHANNELS]))
        total = opset1.add(total, opset1.add(product, bias))
    means = opset1.reduce_mean(total, const([*range(1, rank - 1)], "i64"), False)
    return model(opset1.matmul(quantized(means, -4, 4), int8_weights([8, CHANNELS]), False, True), x)


def layers_of(core, net: Model, batch: int) -> Counter[str]:
    """How many layers of each type ovlpt executes."""
    net.reshape([batch, *list(net.input(0).partial_shape)[1:]])
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT, config=cpu.config())
    inputs = [np.zeros([1, *(size.get_length() for size in list(net.input(0).partial_shape)[1:])], np.float32)]
    return Counter(layer.layer_type for layer in ovlpt.execution_types(compiled, inputs).executed)


@pytest.mark.parametrize("batch", [1, -1], ids=["static", "open"])
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("quantized_sums", [False, True], ids=["floats", "integers"])
def test_sums_after_a_convolution_whose_channels_are_last(core, rank, batch, quantized_sums):
    """Each kept the order in memory of the convolution, between Reorders."""
    few, many = (layers_of(core, patches_and_sums(rank, count, quantized_sums), batch) for count in (2, 5))
    assert many["Reorder"] == few["Reorder"]


@pytest.mark.parametrize("batch", [1, -1], ids=["static", "open"])
@pytest.mark.parametrize("rank", [4, 5])
def test_numbers_after_a_convolution_whose_channels_are_last(core, rank, batch):
    net = patches_and_sums(rank, 3)
    net.reshape([batch, *list(net.input(0).partial_shape)[1:]])
    shape = [1, *(size.get_length() for size in list(net.input(0).partial_shape)[1:])]
    inputs = [np.random.default_rng(1).standard_normal(shape, np.float32)]
    closed = net.clone()
    closed.reshape(shape)
    expected = core.compile_model(closed, "CPU", TRUTH)(inputs)[0]
    trace = ovlpt.Trace()
    plugin = cpu.config(slow_mat_mul=False)  # else the MatMuls become convolutions, too
    found = ovlpt.compile_model(net, "CPU", EXACT, plugin, core=core, trace=trace)(inputs)[0]
    assert "lay_channels_last" in {event.transformation for event in trace}
    assert_close([found], [expected], level=0.02 * float(np.abs(expected).max()), share=1)


def test_one_sum_keeps_the_order_that_there_is(core):
    """Two more layers would be more than the two Reorders."""
    trace = ovlpt.Trace()
    ovlpt.transform(patches_and_sums(4, 1), trace=trace)
    assert "lay_channels_last" not in {event.transformation for event in trace}


def residual_blocks_with_channels_last(count: int) -> Model:
    """As exported from TensorFlow: a Transpose before and after each convolution, and sums with the channels last."""
    x = parameter([-1, 8, 8, CHANNELS])
    total, ones = x, [1, 1]
    for seed in range(2 * count):
        first = opset1.transpose(quantized(total, 0 if seed else -4, 4), const([0, 3, 1, 2], "i64"))
        layer = opset1.convolution(
            first, int8_weights([CHANNELS, CHANNELS, 1, 1], seed=seed), ones, [0, 0], [0, 0], ones
        )
        last = opset1.transpose(layer, const([0, 2, 3, 1], "i64"))
        total = opset1.relu(opset1.add(total, last) if seed else last)
    return model(total, x)


@pytest.mark.parametrize("batch", [1, -1], ids=["static", "open"])
def test_sums_of_convolutions_with_channels_last_alone_are_left(core, batch):
    """Three more layers each, and Reorders after them."""
    net = residual_blocks_with_channels_last(3)
    layers = layers_of(core, net, batch)
    stock = core.compile_model(net, "CPU", EXACT)
    assert layers.total() <= len(ovlpt.execution_types(stock, [np.zeros([1, 8, 8, CHANNELS], np.float32)]).executed)


def test_a_bias_before_a_sum_of_dynamic_sizes_stays_with_it(core):
    """The sum is a layer that takes the bias in; the Reshapes around the MatMul were two layers more."""
    layers = layers_of(core, patches_and_sums(4, 4), -1)
    stock = core.compile_model(patches_and_sums(4, 4), "CPU", EXACT)
    assert layers.total() <= len(ovlpt.execution_types(stock, [np.zeros([1, 3, 16, 16], np.float32)]).executed)


@pytest.mark.parametrize("order, shape", [((3, 1, 2, 0, 4), (3, -1, 1, 16)), ((2, 1, 0, 3, 4), (1, -1, 3, 16))])
def test_queries_keys_and_values_of_a_line_of_open_length(order, shape):
    """Common optimizations of plugins throw, those of floats, too."""
    x = parameter([-1, 1, 48])
    three = opset1.reshape(quantized(x, -3, 3), const([-1, 1, 3, 16], "i64"), False)
    parted = opset1.reshape(three, const([1, -1, 1, 3, 16], "i64"), False)
    joined = opset1.reshape(opset1.transpose(parted, const(order, "i64")), const(shape, "i64"), False)
    net = model(opset1.matmul(joined, int8_weights([32, 16]), False, True), x)
    data = np.random.default_rng(0).uniform(-3, 3, (7, 1, 48)).astype(np.float32)
    result = ovlpt.compile_model(net, "CPU", EXACT)(data)[0]
    net.reshape([7, 1, 48])
    assert_close([result], [ovlpt.openvino_api.Core().compile_model(net, "CPU", TRUTH)(data)[0]])


def embedded(length):
    """Rows of two tables and positions, before two residual layers, as in a decoder of texts."""
    random = np.random.default_rng(0)
    tokens, kinds = (parameter([1, length], "i64", name=name) for name in ("tokens", "kinds"))
    tables = [const(random.standard_normal((size, 32))) for size in (20, 3)]
    rows = [opset1.gather(table, each, const(0, "i64")) for table, each in zip(tables, (tokens, kinds), strict=True)]
    data = opset1.add(opset1.add(*rows), const(random.standard_normal((1, 7, 32))))
    total = data
    for seed in (0, 1):
        normal = opset6.mvn(total, const([2], "i64"), True, 1e-5, "INSIDE_SQRT")
        layer = opset1.matmul(quantized(normal, -2.56, 2.54), int8_weights([32, 32], seed=seed), False, True)
        total = opset1.add(total, layer)
    normal = opset6.mvn(total, const([2], "i64"), True, 1e-5, "INSIDE_SQRT")
    head = opset1.matmul(quantized(normal, -2.56, 2.54), int8_weights([20, 32], seed=2), False, True)
    return model(head, [tokens, kinds]), data


@pytest.mark.parametrize("is_saved", [False, True], ids=["compiled", "saved"])
def test_a_sum_of_embeddings(core, is_saved, tmp_path):
    """In bf16 it got an order of memory that all sums after it kept, each between two Reorders."""
    net, data = embedded(7)
    lowered = ovlpt.transform(net, core=core, serializable=is_saved)
    node = next(each for each in lowered.get_ops() if each.get_friendly_name() == data.get_friendly_name())
    assert keeps_types(node)
    if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this CPU, or the instruction set that it is held to, does not compute in bf16")
    config = {"INFERENCE_PRECISION_HINT": "bf16", **ovlpt.lpt_properties(lowered, "CPU")}
    if is_saved:
        ovlpt.save_model(lowered, tmp_path / "net.xml")
        lowered = tmp_path / "net.xml"
    compiled = core.compile_model(lowered, "CPU", config)
    reorders = [each.name for each in ovlpt.execution_types(compiled).executed if each.layer_type == "Reorder"]
    if not is_saved or MARKS_TYPES:
        assert not [name for name in reorders if "acb" in name]
    inputs = [np.arange(7)[None], np.arange(7)[None] % 3]
    expected = simulate(net, core)(inputs)[0]
    assert np.abs(compiled(inputs)[0] - expected).max() < 0.05 * np.abs(expected).max()


def test_a_sum_of_other_data_is_left(core):
    x = parameter([1, 7, 32])
    total = opset1.add(x, const(np.ones((1, 7, 32))))
    net = model(opset1.matmul(quantized(total, -1.28, 1.27), int8_weights([8, 32]), False, True), x)
    trace = ovlpt.Trace()
    ovlpt.transform(net, core=core, trace=trace)
    assert "keep_embeddings" not in {event.transformation for event in trace}
