from __future__ import annotations

import pytest

import ovlpt
from ovlpt.attributes import AttributeTable, QuantizationAlignment
from ovlpt.markup import native
from ovlpt.markup.align_quantization_parameters import AlignQuantizationParameters
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import model
from tests.markup.marking import the
from tests.restricted_networks import concat, convolution, image


@pytest.mark.parametrize(("ports", "aligned"), [([0], True), ([], False)])
def test_only_before_what_wants_one_scale(ports, aligned):
    graph, attributes = concat([(0.0, 2.55), (-1.28, 1.27)]), AttributeTable()
    restrictions = [ovlpt.QuantizationGranularityRestriction.create("Convolution", ports)] if ports else []
    settings = {"attributes": attributes}
    run_pass(graph, MarkupPrecisions(**settings), MarkupQuantizationGranularity(restrictions, **settings))
    run_pass(graph, AlignQuantizationParameters(**settings))
    assert attributes.get(the(graph, "Concat"), QuantizationAlignment).value is aligned


@pytest.mark.parametrize(
    ("kind", "aligned"), [(AlignQuantizationParameters, False), (native.AlignQuantizationParameters, True)]
)
def test_not_for_what_another_reader_wants(kind, aligned):
    pool = opset1.max_pool(image(-1.28, 1.27, name="x0"), [1, 1], [0, 0], [0, 0], [1, 1])
    joined = opset1.concat([pool, image(name="x1")], 2)
    graph, attributes = model(convolution(pool), joined), AttributeTable()
    settings = {"attributes": attributes}
    restrictions = [ovlpt.QuantizationGranularityRestriction.create("Convolution", [0])]
    run_pass(graph, MarkupPrecisions(**settings), MarkupQuantizationGranularity(restrictions, **settings))
    run_pass(graph, kind(**settings))
    assert attributes.get(the(graph, "MaxPool"), QuantizationAlignment).value
    assert attributes.get(the(graph, "Concat"), QuantizationAlignment).value is aligned
