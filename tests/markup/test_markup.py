"""Attributes: what markup passes leave, alone, switched off, and between passes."""

from __future__ import annotations

import pytest

import ovlpt
from ovlpt.attributes import (
    AttributeTable,
    AvgPoolPrecisionPreserved,
    PrecisionPreserved,
    Precisions,
    QuantizationGranularity,
)
from ovlpt.graph.text import to_text
from ovlpt.main.convolution import ConvolutionTransformation
from ovlpt.main.fake_quantize_decomposition import FakeQuantizeDecompositionTransformation
from ovlpt.markup.markup_avg_pool_precision_preserved import MarkupAvgPoolPrecisionPreserved
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from ovlpt.markup.propagate_precisions import PropagatePrecisions
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import run_pass
from tests.graphs import model
from tests.restricted_networks import avg_pool, convolution, image, one_convolution, two_convolutions

U8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]})
I8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})


def the(graph, kind: str):
    return next(node for node in graph.get_ops() if node.get_type_name() == kind)


def test_precisions_reach_the_fake_quantize_through_a_chain():
    graph, attributes = model(convolution(opset1.relu(image()))), AttributeTable()
    run_pass(graph, MarkupPrecisions([I8], attributes=attributes), PropagatePrecisions(attributes=attributes))
    on_output = attributes.get(the(graph, "FakeQuantize").output(0), Precisions)
    on_input = attributes.get(the(graph, "Convolution").input(0), Precisions)
    assert on_output.value == ("i8",)
    assert on_output.shared is on_input.shared
    assert attributes.get(the(graph, "Relu"), PrecisionPreserved).value


def test_two_consumers_share_one_value():
    graph, attributes = two_convolutions(), AttributeTable()
    run_pass(graph, MarkupPrecisions([U8], attributes=attributes), PropagatePrecisions(attributes=attributes))
    inputs = [target for target in the(graph, "FakeQuantize").output(0).get_target_inputs()]
    values = [attributes.get(place, Precisions) for place in inputs]
    assert values[0].shared is values[1].shared
    values[0].value = ()
    assert values[1].value == ()


def test_granularity():
    graph, attributes = one_convolution(), AttributeTable()
    restriction = ovlpt.QuantizationGranularityRestriction.create("Convolution", [0])
    run_pass(graph, MarkupQuantizationGranularity([restriction], attributes=attributes))
    node = the(graph, "Convolution")
    assert attributes.get(node.input(0), QuantizationGranularity).value == "per_tensor"
    assert attributes.get(node.input(1), QuantizationGranularity) is None


@pytest.mark.parametrize(
    ("after", "preserved"), [(convolution, True), (lambda data: opset1.result(data).input_value(0).get_node(), False)]
)
def test_a_pool_keeps_its_precision_before_a_quantized_operation(after, preserved):
    graph, attributes = avg_pool(after), AttributeTable()
    run_pass(graph, MarkupAvgPoolPrecisionPreserved(attributes=attributes))
    last = [node for node in graph.get_ordered_ops() if node.get_type_name() == "AvgPool"][-1]
    assert attributes.get(last, AvgPoolPrecisionPreserved).value is preserved


def run(graph, passes: ovlpt.PassConfig, restriction=I8):
    trace = ovlpt.Trace()
    run_pass(graph, ovlpt.LowPrecision([restriction], pass_config=passes, trace=trace))
    return to_text(graph), trace


def test_a_markup_pass_with_a_callback():
    passes = ovlpt.PassConfig()
    passes.set_callback(MarkupPrecisions, lambda node: node.get_type_name() == "Convolution")
    text, trace = run(one_convolution(-1.28, 1.27), passes, U8)
    assert "fq_x: i8" in text  # u8 with the restriction
    assert any(event.outcome is Outcome.DISABLED and event.operation == "Convolution" for event in trace)


def test_a_callback_of_a_pass_of_several_steps_counts_in_each():
    passes = ovlpt.PassConfig()
    passes.set_callback(PropagatePrecisions, lambda node: node.get_type_name() == "FakeQuantize")
    text, trace = run(one_convolution(), passes)
    assert "fq_x: f32" in text  # nothing marks which precisions its consumers take
    assert any(event.reason and event.reason.code == "no_markup" for event in trace)


def test_disable_and_enable_a_markup_pass():
    passes = ovlpt.PassConfig()
    passes.disable(PropagatePrecisions)
    assert "fq_x: f32" in run(one_convolution(), passes)[0]
    passes.enable("PropagatePrecisions")
    assert "fq_x: i8" in run(one_convolution(), passes)[0]


def test_attributes_survive_graph_edits_between_passes():
    """What markup wrote is found again on the nodes that passes put in the place of others."""
    graph, attributes = model(convolution(opset1.relu(image()))), AttributeTable()
    settings = {"attributes": attributes}
    run_pass(graph, MarkupPrecisions([I8], **settings), PropagatePrecisions(**settings))
    before = the(graph, "FakeQuantize").get_instance_id(), the(graph, "Convolution").get_instance_id()
    run_pass(graph, FakeQuantizeDecompositionTransformation(**settings))
    quantize = the(graph, "FakeQuantize")
    assert quantize.get_instance_id() != before[0]
    assert attributes.get(quantize.output(0), Precisions).value == ("i8",)
    assert quantize.get_output_element_type(0).get_type_name() == "i8"
    relu = the(graph, "Relu")
    relu.input(0).replace_source_output(quantize.output(0))  # an edit from outside
    assert attributes.get(relu, PrecisionPreserved).value
    run_pass(graph, ovlpt.low_precision.ReluTransformation(**settings), ConvolutionTransformation(**settings))
    assert attributes.get(the(graph, "Relu"), PrecisionPreserved).value
    assert attributes.get(the(graph, "Convolution").input(0), Precisions).value == ("i8",)


@pytest.mark.parametrize(
    ("low", "high", "order", "chosen"),
    [
        (-1.0, 1.55, ("u8", "i8"), "u8"),  # an interval that asks for no type: the first of the list
        (-1.0, 1.55, ("i8", "u8"), "i8"),
        (0.0, 2.55, ("i8", "u8"), "u8"),  # an interval that asks for one: the order is nothing to it
        (-1.28, 1.27, ("u8", "i8"), "i8"),
        (-1.28, 1.27, ("u8",), "u8"),
    ],
)
def test_the_order_of_precisions(low, high, order, chosen):
    """The matrix of restrictions holds the same orders against the native pass."""
    restriction = ovlpt.PrecisionsRestriction.create("Convolution", {0: order, 1: ["i8"]})
    assert f"fq_x: {chosen}" in run(one_convolution(low, high), ovlpt.PassConfig(), restriction)[0]
