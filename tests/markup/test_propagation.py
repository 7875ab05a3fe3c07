"""Attributes between passes, and passes of several steps."""

from __future__ import annotations

import ovlpt
from ovlpt.attributes import AttributeTable, PrecisionPreserved, Precisions
from ovlpt.main.convolution import ConvolutionTransformation
from ovlpt.main.fake_quantize_decomposition import FakeQuantizeDecompositionTransformation
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.propagate_precisions import PropagatePrecisions
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import model
from tests.markup.marking import I8, run, the
from tests.restricted_networks import convolution, image, one_convolution


def test_a_callback_of_a_pass_of_several_steps_counts_in_each():
    passes = ovlpt.PassConfig()
    passes.set_callback(PropagatePrecisions, lambda node: node.get_type_name() == "FakeQuantize")
    text, trace = run(one_convolution(), passes)
    assert "fq_x: f32" in text  # nothing marks which precisions its consumers take
    assert any(event.reason and event.reason.code == "no_markup" for event in trace)


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
