from __future__ import annotations

import pytest

from ovlpt.attributes import AttributeTable, AvgPoolPrecisionPreserved
from ovlpt.markup.markup_avg_pool_precision_preserved import MarkupAvgPoolPrecisionPreserved
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.restricted_networks import avg_pool, convolution


@pytest.mark.parametrize(
    ("after", "preserved"), [(convolution, True), (lambda data: opset1.result(data).input_value(0).get_node(), False)]
)
def test_a_pool_keeps_its_precision_before_a_quantized_operation(after, preserved):
    graph, attributes = avg_pool(after), AttributeTable()
    run_pass(graph, MarkupAvgPoolPrecisionPreserved(attributes=attributes))
    last = [node for node in graph.get_ordered_ops() if node.get_type_name() == "AvgPool"][-1]
    assert attributes.get(last, AvgPoolPrecisionPreserved).value is preserved
