from __future__ import annotations

import pytest

import ovlpt
from ovlpt.attributes import AttributeTable, PrecisionPreserved, Precisions
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.propagate_precisions import PropagatePrecisions
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import model
from tests.markup.marking import I8, U8, run, the
from tests.restricted_networks import convolution, image, one_convolution, two_convolutions


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


def test_disable_and_enable_a_markup_pass():
    passes = ovlpt.PassConfig()
    passes.disable(PropagatePrecisions)
    assert "fq_x: f32" in run(one_convolution(), passes)[0]
    passes.enable("PropagatePrecisions")
    assert "fq_x: i8" in run(one_convolution(), passes)[0]


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
