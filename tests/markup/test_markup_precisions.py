from __future__ import annotations

import ovlpt
from ovlpt.attributes import AttributeTable, PrecisionPreserved, Precisions, input_key
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.openvino_api import opset1
from ovlpt.trace import Outcome
from tests.conftest import run_pass
from tests.graphs import model
from tests.markup.marking import I8, U8, run, the
from tests.restricted_networks import convolution, image, one_convolution


def test_what_preserves_precision_and_what_an_input_takes():
    graph, attributes = model(convolution(opset1.sigmoid(opset1.relu(image())))), AttributeTable()
    run_pass(graph, MarkupPrecisions([I8], attributes=attributes))
    assert attributes.get(the(graph, "Relu"), PrecisionPreserved).value
    assert attributes.get(the(graph, "Convolution").input(0), Precisions).value == ("i8",)
    assert attributes.get(input_key(the(graph, "Sigmoid"), 0), Precisions).value == ()


def test_a_markup_pass_with_a_callback():
    passes = ovlpt.PassConfig()
    passes.set_callback(MarkupPrecisions, lambda node: node.get_type_name() == "Convolution")
    text, trace = run(one_convolution(-1.28, 1.27), passes, U8)
    assert "fq_x: i8" in text  # u8 with the restriction
    assert any(event.outcome is Outcome.DISABLED and event.operation == "Convolution" for event in trace)
