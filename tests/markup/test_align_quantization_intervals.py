from __future__ import annotations

import pytest

import ovlpt
from ovlpt.attributes import AttributeTable, IntervalsAlignment
from ovlpt.markup import native
from ovlpt.markup.align_quantization_intervals import AlignQuantizationIntervals
from ovlpt.markup.align_quantization_parameters import AlignQuantizationParameters
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from tests.conftest import run_pass
from tests.markup.marking import the
from tests.restricted_networks import concat


@pytest.mark.parametrize(("kind", "grids"), [(AlignQuantizationIntervals, 2), (native.AlignQuantizationIntervals, 0)])
def test_those_that_meet_share_the_union(kind, grids):
    graph, attributes = concat([(0.0, 2.55), (-1.28, 1.27)]), AttributeTable()
    settings = {"attributes": attributes}
    asked = [ovlpt.QuantizationGranularityRestriction.create("Convolution", [0])]
    run_pass(graph, MarkupPrecisions(**settings), MarkupQuantizationGranularity(asked, **settings))
    run_pass(graph, AlignQuantizationParameters(**settings), kind(**settings))
    aligned = attributes.get(the(graph, "Concat"), IntervalsAlignment).value
    assert (aligned.combined_low, aligned.combined_high) == pytest.approx((-1.28, 2.55))
    assert len(aligned.grids) == grids


@pytest.mark.parametrize(
    ("kind", "high"), [(AlignQuantizationIntervals, 1.27), (native.AlignQuantizationIntervals, 2.55)]
)
def test_those_that_meet_before_a_reader_without_need_keep_their_own(kind, high):
    graph, attributes = concat([(-1.28, 1.27), (0.0, 2.55)]), AttributeTable()
    settings = {"attributes": attributes}
    run_pass(graph, MarkupPrecisions(**settings), AlignQuantizationParameters(**settings), kind(**settings))
    own = attributes.get(the(graph, "Concat").input_value(0).get_node(), IntervalsAlignment).value
    assert own.combined_high == pytest.approx(high)


def test_one_alone_keeps_its_own():
    graph, attributes = concat([(0.0, 2.55)]), AttributeTable()
    run_pass(graph, AlignQuantizationIntervals(attributes=attributes))
    own = attributes.get(the(graph, "FakeQuantize"), IntervalsAlignment)
    assert (own.value.combined_low, own.value.combined_high, own.levels) == (0.0, pytest.approx(2.55), 256)
