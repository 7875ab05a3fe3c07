from __future__ import annotations

import numpy as np
import pytest

from ovlpt.attributes import AttributeTable, Precisions, input_key
from ovlpt.markup.markup_can_be_quantized import MarkupCanBeQuantized
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, model
from tests.markup.marking import the
from tests.restricted_networks import image, one_convolution


def with_real_weights():
    return model(opset1.convolution(image(), f32(np.ones((4, 4, 1, 1))), [1, 1], [0, 0], [0, 0], [1, 1]))


@pytest.mark.parametrize(("network", "forbidden"), [(one_convolution, False), (with_real_weights, True)])
def test_a_convolution_takes_no_integers_where_its_weights_are_real(network, forbidden):
    graph, attributes = network(), AttributeTable()
    run_pass(graph, MarkupCanBeQuantized(attributes=attributes))
    marks = [attributes.get(input_key(the(graph, "Convolution"), port), Precisions) for port in (0, 1)]
    assert [mark is not None and mark.value == () for mark in marks] == [forbidden] * 2
