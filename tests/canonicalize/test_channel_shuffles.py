from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.canonicalize.channel_shuffles import ChannelShuffles
from ovlpt.openvino_api import Manager, Node, opset1
from ovlpt.trace import Outcome, Trace
from tests.conftest import Transformed
from tests.graphs import dequantization, f32, fake_quantize, i64, model, opset3, opset8, parameter, run

NAME = "ChannelShuffles"


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def steps(channels, axis=0, rank=4):
    """A quantization step for each channel. All are powers of two, and so no sum of products is near a rounding border
    that a bias keeps off.
    """
    return np.resize([2.0**-6, 2.0**-5, 2.0**-6], channels).reshape([-1 if at == axis else 1 for at in range(rank)])


def stored_weights(shape):
    """Integers with a scale for each output channel."""
    values = np.random.default_rng(1).integers(-60, 61, shape).astype(np.int8)
    return dequantization(opset1.constant(values), steps(shape[0], rank=len(shape)), None, "w")


def quantized_weights(shape):
    high = 127 * steps(shape[0], rank=len(shape))
    return fake_quantize(f32(random(shape)), -high, high, 255, "w")


def channels_of(data):
    return (
        data.get_output_partial_shape(0)[1].get_length()
        if isinstance(data, Node)
        else data.get_partial_shape()[1].get_length()
    )


def biased(layer):
    """Off the rounding borders of what is quantized after it."""
    count = layer.get_output_partial_shape(0)[1].get_length()
    return opset1.add(layer, f32((np.arange(count).reshape(1, -1, 1, 1) - 4) / 8 + 2.0**-14))


def convolution(data, outputs, weights=stored_weights, kernel=1, stride=1):
    pads = [kernel // 2] * 2
    sizes = outputs, channels_of(data), kernel, kernel
    return biased(opset1.convolution(data, weights(sizes), [stride] * 2, pads, pads, [1, 1]))


def depthwise(data, weights=stored_weights, stride=1):
    channels = channels_of(data)
    taken_apart = opset1.reshape(weights((channels, 1, 3, 3)), i64(channels, 1, 1, 3, 3), False)
    return biased(opset1.group_convolution(data, taken_apart, [stride] * 2, [1, 1], [1, 1], [1, 1]))


def quantized(data, channels=None):
    """After a ReLU; one interval, or one for each of the channels."""
    high = 255 * (steps(channels, 1) if channels else 2.0**-6)
    return fake_quantize(opset1.relu(data), 0 * np.asarray(high), high)


def shuffle(data, groups=2):
    return opset3.shuffle_channels(data, 1, groups)


def shuffle_by_reshapes(data, groups=2, flat=True):
    """As PyTorch writes it; the last Reshape asks the data for its shape."""
    channels = data.get_output_partial_shape(0)[1].get_length()
    apart = (0, groups, channels // groups, -1) if flat else (0, groups, channels // groups, 8, 8)
    order = i64(0, 2, 1, *range(3, len(apart)))
    transposed = opset1.transpose(opset1.reshape(data, i64(*apart), True), order)
    return opset1.reshape(transposed, opset3.shape_of(data), False)


def split(data):
    return opset1.split(data, opset1.constant(np.int64(-3)), 2).outputs()


def variadic_split(data):
    return opset1.variadic_split(data, opset1.constant(np.int64(1)), i64(8, -1)).outputs()


def unit(data, shuffle=shuffle, split=split, weights=stored_weights):
    left, right = split(data)
    main = quantized(convolution(right, 8, weights), channels=8)
    main = quantized(convolution(quantized(depthwise(main, weights)), 8, weights))
    return shuffle(opset1.concat([left, main], 1))


def stem(batch=1, weights=stored_weights):
    x = fake_quantize(parameter((batch, 4, 8, 8)), -2, 127 / 64)
    both = [quantized(convolution(x, 8, weights, kernel)) for kernel in (1, 3)]
    return opset1.concat(both, 1)


def tail(data, weights=stored_weights):
    """Both branches of a unit of stride 2."""
    side = quantized(depthwise(data, weights, stride=2))
    return opset1.add(convolution(side, 6, weights), convolution(data, 6, weights, kernel=3, stride=2))


def shuffle_net(units=3, batch=1, **kinds):
    weights = kinds.get("weights", stored_weights)
    x = kinds.get("shuffle", shuffle)(stem(batch, weights))
    for _ in range(units):
        x = unit(x, **kinds)
    return model(tail(x, weights))


def repaired(graph):
    result, trace, manager = graph.clone(), Trace(), Manager()
    manager.register_pass(ChannelShuffles(trace=trace))
    manager.run_passes(result)
    return result, trace


def kinds(graph):
    return [node.get_type_name() for node in graph.get_ops()]


def assert_exact(graph, shuffles, batch=1):
    result, trace = repaired(graph)
    assert [(event.outcome, event.reason.code) for event in trace] == [
        (Outcome.TRANSFORMED, "channel_shuffle")
    ] * shuffles
    assert not {"ShuffleChannels", "Transpose"} & set(kinds(result))
    data = [2 * random((batch, 4, 8, 8))]
    for before, after in zip(run(graph, data), run(result, data), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())
    return result


FORMS = {
    "operation": dict(shuffle=shuffle),
    "four groups": dict(shuffle=lambda data: shuffle(data, 4)),
    "Reshape, Transpose, Reshape": dict(shuffle=shuffle_by_reshapes),
    "rank 5": dict(shuffle=lambda data: shuffle_by_reshapes(data, flat=False)),
    "VariadicSplit": dict(split=variadic_split),
    "weights after FakeQuantize": dict(weights=quantized_weights),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_units(form):
    graph = shuffle_net(**form)
    result = assert_exact(graph, 4)
    assert kinds(result).count("Concat") == 4  # one for each layer that reads more than one
    lengths = [
        node.input_value(2).get_node().data for node in result.get_ops() if node.get_type_name() == "VariadicSplit"
    ]
    assert all(sum(each) == 8 for each in lengths)


def test_a_shuffle_between_two_layers_leaves_nothing():
    x = fake_quantize(parameter((1, 4, 8, 8)), -2, 127 / 64)
    between = shuffle(quantized(opset1.max_pool(convolution(x, 8), [1, 1], [1, 1], [1, 1], [3, 3])))
    result = assert_exact(model(convolution(between, 6)), 1)
    assert not {"Concat", "Split", "VariadicSplit"} & set(kinds(result))


def test_the_input_keeps_its_order():
    """Nothing above can take another one, and no reader asks for one."""
    x = fake_quantize(parameter((1, 4, 8, 8)), -2, 127 / 64)
    assert_exact(model(convolution(shuffle(x), 6)), 1)


def test_open_batch():
    graph = shuffle_net(batch=-1)
    assert_exact(graph, 4, batch=3)
    flat = shuffle_net(batch=-1, shuffle=shuffle_by_reshapes)
    assert_exact(flat, 4, batch=3)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_low_precision(form):
    result = Transformed(shuffle_net(1, **form))
    events = [event for event in result.trace if event.transformation == NAME]
    assert [event.outcome for event in events] == [Outcome.TRANSFORMED] * 2
    moved = [node for node in result.after.get_ops() if node.get_type_name() in ("Concat", "VariadicSplit")]
    assert {node.get_input_element_type(0).get_type_name() for node in moved} == {"u8"}
    result.assert_numbers()


def test_what_is_quantized_after_a_shuffle_is_quantized_as_a_whole():
    """Each of the pieces that a Concat joins would be quantized in a layer of its own."""
    x = opset1.relu(convolution(fake_quantize(parameter((1, 4, 8, 8)), -2, 127 / 64), 16))
    for _ in range(2):
        left, right = split(x)
        main = opset1.relu(convolution(fake_quantize(right, 0, 255 / 64), 8))
        x = shuffle(opset1.concat([left, main], 1))
    result = Transformed(model(convolution(fake_quantize(x, 0, 255 / 64), 6)))
    assert [event.outcome for event in result.trace if event.transformation == NAME] == [Outcome.TRANSFORMED] * 2
    assert kinds(result.after).count("FakeQuantize") == kinds(result.before).count("FakeQuantize")
    result.assert_numbers()


def test_native_only():
    result = Transformed(shuffle_net(1), Params(native_only=True))
    assert not [event for event in result.trace if event.transformation == NAME]
    assert kinds(result.after).count("ShuffleChannels") == 2


def last(build):
    """A network that ends with something after a shuffle."""
    return model(build(unit(shuffle(stem()))))


def grouped(data):
    weights = stored_weights((2, 3, 8, 1, 1))
    return opset1.group_convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def doubled(data):
    return convolution(opset1.concat([data, data], 1), 6)


def residual(data):
    return convolution(opset1.add(data, stem()), 6)


def computed_weights(data):
    weights = opset1.add(f32(random((6, 16, 1, 1))), opset1.reduce_mean(stem(), i64(0, 1, 2, 3), True))
    return opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def read_indices(data):
    return opset1.multiply(*map(lambda each: opset1.convert(each, "f32"), _pool(data).outputs()))


def _pool(data):
    return opset8.max_pool(data, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2])


REFUSED = {
    "an output": (lambda data: data, "channel_order"),
    "groups": (grouped, "channel_order"),
    "a sum of two": (residual, "channel_order"),
    "weights that are computed": (computed_weights, "dynamic_constants"),
    "indices": (read_indices, "channel_order"),
    "channels twice": (doubled, "repeated_channels"),
    "a softmax": (lambda data: opset1.softmax(data, 1), "channel_order"),
}


@pytest.mark.parametrize("build, code", REFUSED.values(), ids=REFUSED)
def test_refusals(build, code):
    graph = last(build)
    result, trace = repaired(graph)
    assert [event.reason.code for event in trace][-1] == code
    assert {event.outcome for event in trace} == {Outcome.REJECTED}
    assert kinds(result) == kinds(graph)


def test_sources_whose_order_is_given():
    """The input's channels would have to change places."""
    x = fake_quantize(parameter((1, 16, 8, 8)), -2, 127 / 64)
    left, right = split(shuffle(x))
    _, trace = repaired(model(convolution(left, 6), convolution(right, 6)))
    assert [event.reason.code for event in trace] == ["channel_order"]


def test_a_layer_before_that_others_read():
    x = convolution(fake_quantize(parameter((1, 4, 8, 8)), -2, 127 / 64), 16)
    left, right = split(shuffle(quantized(x)))
    graph = model(convolution(left, 6), convolution(right, 6), opset1.reduce_mean(x, i64(1)))
    _, trace = repaired(graph)
    assert [event.reason.code for event in trace] == ["shared"]


def test_other_axes_are_no_concern():
    x = quantized(convolution(fake_quantize(parameter((1, 4, 8, 8)), -2, 127 / 64), 8))
    rows = opset3.shuffle_channels(x, 2, 2)
    columns = opset1.reshape(
        opset1.transpose(opset1.reshape(rows, i64(1, 8, 8, 2, 4), False), i64(0, 1, 2, 4, 3)), i64(1, 8, 8, 8), False
    )
    _, trace = repaired(model(convolution(columns, 6)))
    assert not len(trace)


def test_open_sizes_are_no_concern():
    """Two dynamic sizes may have changed places."""
    x = quantized(convolution(fake_quantize(parameter((1, 4, -1, -1)), -2, 127 / 64), 8))
    _, trace = repaired(model(convolution(shuffle_by_reshapes(x), 6)))
    assert not len(trace)
