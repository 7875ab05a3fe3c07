from __future__ import annotations

import ovlpt
from ovlpt.attributes import AttributeTable, QuantizationGranularity
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from tests.conftest import run_pass
from tests.markup.marking import the
from tests.restricted_networks import one_convolution


def test_granularity():
    graph, attributes = one_convolution(), AttributeTable()
    restriction = ovlpt.QuantizationGranularityRestriction.create("Convolution", [0])
    run_pass(graph, MarkupQuantizationGranularity([restriction], attributes=attributes))
    node = the(graph, "Convolution")
    assert attributes.get(node.input(0), QuantizationGranularity).value == "per_tensor"
    assert attributes.get(node.input(1), QuantizationGranularity) is None
