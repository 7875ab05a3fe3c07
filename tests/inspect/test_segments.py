"""A network in segments: every operation in one of them, and all of them together what they were."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import compile_model, data, execution_types
from ovlpt.graph.constants import is_constant_path
from ovlpt.inspect.segments import Segments, apart, observed, up_to
from ovlpt.openvino_api import opset1
from tests.conftest import inputs_of
from tests.graphs import run
from tests.networks import (
    const,
    convolution,
    encoder,
    model,
    one_convolution,
    parameter,
    quantized,
    residual,
    shared_zero_point,
)


def float_shortcut():
    """A value that is quantized for a convolution and added to its result as it is."""
    x = parameter([1, 16, 8, 8])
    shared = opset1.relu(convolution(quantized(x, 0, 2.55, name="first"), 16))
    shared.set_friendly_name("shared")
    return model(opset1.add(convolution(quantized(shared, 0, 3, name="second"), 16, seed=1), shared), x)


def stored_integers():
    """As Q/DQ files are read: each FakeQuantize gives the integers of a type, which are dequantized after it."""
    x = parameter([1, 16, 8, 8])
    return model(convolution(opset1.relu(convolution(stored(x, -2.56, 2.54), 16)), 16, seed=1), x)


def stored(value, low, high):
    integers = opset1.fake_quantize(value, const(low), const(high), const(-128.0), const(127.0), 256)
    return opset1.multiply(opset1.convert(opset1.convert(integers, "i8"), "f32"), const((high - low) / 255))


def shared_dequantization():
    """Two layers read one dequantization, one of them moved."""
    x = parameter([1, 16, 8, 8])
    integers = opset1.fake_quantize(x, const(-2.56), const(2.54), const(-128.0), const(127.0), 256)
    shifted = opset1.subtract(
        opset1.convert(opset1.convert(integers, "i8"), "f32"), opset1.convert(const(20, "i8"), "f32")
    )
    shared = opset1.multiply(shifted, const(0.02))
    moved = opset1.transpose(shared, const([0, 1, 3, 2], "i64"))
    return model([convolution(shared, 16), convolution(shared, 16, seed=1), convolution(moved, 16, seed=2)], x)


def inverted():
    """An interval that is mirrored."""
    x = parameter([1, 16, 8, 8])
    mirrored = opset1.fake_quantize(x, const(-2.56), const(2.54), const(1.28), const(-1.27), 256)
    return model(convolution(mirrored, 16), x)


NETWORKS = pytest.mark.parametrize(
    "network",
    [
        one_convolution,
        residual,
        shared_zero_point,
        encoder,
        float_shortcut,
        stored_integers,
        inverted,
        shared_dequantization,
    ],
    ids=lambda network: network.__name__,
)


def names(values):
    return [value.get_node().get_friendly_name() for value in values]


@NETWORKS
def test_every_operation_on_data_is_in_one_segment(network):
    net = network()
    found = [node.get_friendly_name() for segment in Segments(net).segments for node in segment.nodes]
    between = [
        node.get_friendly_name()
        for node in net.get_ops()
        if node.get_type_name() not in ("Parameter", "Result", "FakeQuantize") and not is_constant_path(node)
    ]
    assert sorted(found) == sorted(between)


def test_clones_have_the_same_points_in_the_same_order(core):
    net = core.read_model(data.digits())
    assert names(Segments(net).points) == names(Segments(net.clone()).points)


def test_a_fake_quantize_inside_ends_no_segment():
    net = residual()
    inside = [node.get_friendly_name() for node in Segments(net).quantizers][2]
    joined = Segments(net, {inside})
    assert len(joined.segments) == len(Segments(net).segments) - 1
    (segment,) = (each for each in joined.segments if inside in [node.get_friendly_name() for node in each.nodes])
    assert [node.get_type_name() for node in segment.quantized] == ["Convolution", "Add"]


def test_a_value_that_a_later_segment_reads_too_is_a_point():
    net = float_shortcut()
    cut = Segments(net)
    assert names(cut.feeds) == ["first", "second", "shared"]
    assert [sorted(names(segment.sources)) for segment in cut.segments] == [["first"], ["second", "shared"]]


@NETWORKS
def test_segments_alone_with_the_values_of_the_network_are_the_network(network):
    net = network()
    sample, count = inputs_of(net), len(net.outputs)
    values = run(observed(net), sample)
    cut = Segments(net)
    alone = run(apart(net), [*sample, *values[count:][: len(cut.feeds)]])
    assert len(alone) == len(cut.segments)
    for segment, value in zip(cut.segments, alone, strict=True):
        expected = values[count + cut.place_of(segment.point)]
        np.testing.assert_allclose(value, expected, atol=1e-5 * np.abs(expected).max())


@NETWORKS
def test_a_network_up_to_a_point_ends_in_its_value(network):
    net = network()
    sample, count = inputs_of(net), len(net.outputs)
    values = run(observed(net), sample)[count:]
    for place, value in enumerate(values):
        np.testing.assert_array_equal(run(up_to(net, (), place), sample)[0], value)


def test_layers_alone_that_share_a_dequantization_run_in_int8_as_they_do_together(core):
    net = shared_dequantization()
    for each in (net, apart(net)):
        executed = execution_types(compile_model(each, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core)).executed
        assert [layer.is_int8 for layer in executed if layer.layer_type == "Convolution"] == [True] * 3
