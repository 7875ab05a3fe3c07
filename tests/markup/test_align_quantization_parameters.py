from __future__ import annotations

import pytest

import ovlpt
from ovlpt.attributes import AttributeTable, QuantizationAlignment
from ovlpt.markup.align_quantization_parameters import AlignQuantizationParameters
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from tests.conftest import run_pass
from tests.markup.marking import the
from tests.restricted_networks import concat


@pytest.mark.parametrize(("ports", "aligned"), [([0], True), ([], False)])
def test_only_before_what_wants_one_scale(ports, aligned):
    graph, attributes = concat([(0.0, 2.55), (-1.28, 1.27)]), AttributeTable()
    restrictions = [ovlpt.QuantizationGranularityRestriction.create("Convolution", ports)] if ports else []
    settings = {"attributes": attributes}
    run_pass(graph, MarkupPrecisions(**settings), MarkupQuantizationGranularity(restrictions, **settings))
    run_pass(graph, AlignQuantizationParameters(**settings))
    assert attributes.get(the(graph, "Concat"), QuantizationAlignment).value is aligned
