from __future__ import annotations

import pytest

from ovlpt.attributes import AttributeTable, IntervalsAlignment
from ovlpt.markup import native
from ovlpt.markup.align_quantization_intervals import AlignQuantizationIntervals
from ovlpt.markup.markup_precisions import MarkupPrecisions
from tests.conftest import run_pass
from tests.markup.marking import the
from tests.restricted_networks import concat


@pytest.mark.parametrize(("kind", "grids"), [(AlignQuantizationIntervals, 2), (native.AlignQuantizationIntervals, 0)])
def test_those_that_meet_share_the_union(kind, grids):
    graph, attributes = concat([(0.0, 2.55), (-1.28, 1.27)]), AttributeTable()
    run_pass(graph, MarkupPrecisions(attributes=attributes), kind(attributes=attributes))
    aligned = attributes.get(the(graph, "Concat"), IntervalsAlignment).value
    assert (aligned.combined_low, aligned.combined_high) == pytest.approx((-1.28, 2.55))
    assert len(aligned.grids) == grids


def test_one_alone_keeps_its_own():
    graph, attributes = concat([(0.0, 2.55)]), AttributeTable()
    run_pass(graph, AlignQuantizationIntervals(attributes=attributes))
    own = attributes.get(the(graph, "FakeQuantize"), IntervalsAlignment)
    assert (own.value.combined_low, own.value.combined_high, own.levels) == (0.0, pytest.approx(2.55), 256)
