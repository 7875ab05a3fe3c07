from __future__ import annotations

import pytest

from ovlpt.attributes import AttributeTable, AvgPoolPrecisionPreserved
from ovlpt.markup import markup_avg_pool_precision_preserved as ours
from ovlpt.markup import native
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import i64
from tests.restricted_networks import avg_pool, convolution


@pytest.mark.parametrize(
    ("after", "preserved"), [(convolution, True), (lambda data: opset1.result(data).input_value(0).get_node(), False)]
)
def test_a_pool_keeps_its_precision_before_a_quantized_operation(after, preserved):
    graph, attributes = avg_pool(after), AttributeTable()
    run_pass(graph, ours.MarkupAvgPoolPrecisionPreserved(attributes=attributes))
    last = [node for node in graph.get_ordered_ops() if node.get_type_name() == "AvgPool"][-1]
    assert attributes.get(last, AvgPoolPrecisionPreserved).value is preserved


@pytest.mark.parametrize(
    ("kind", "preserved"),
    [(ours.MarkupAvgPoolPrecisionPreserved, False), (native.MarkupAvgPoolPrecisionPreserved, True)],
)
def test_what_has_no_weights_reads_averages_that_are_not_rounded(kind, preserved):
    """But with `native_only`."""
    graph, attributes = avg_pool(lambda data: opset1.reduce_mean(data, i64(2, 3), True)), AttributeTable()
    run_pass(graph, kind(attributes=attributes))
    last = [node for node in graph.get_ordered_ops() if node.get_type_name() == "AvgPool"][-1]
    assert attributes.get(last, AvgPoolPrecisionPreserved).value is preserved
