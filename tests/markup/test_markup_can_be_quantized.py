from __future__ import annotations

import numpy as np
import pytest

from ovlpt.attributes import AttributeTable, Precisions, input_key
from ovlpt.markup import native
from ovlpt.markup.markup_can_be_quantized import MarkupCanBeQuantized
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, fake_quantize, model
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


def with_weights_by_row(shape):
    """As NNCF quantizes depthwise weights that a Reshape makes: an interval for each row of the kernels."""
    values = f32(np.linspace(-1, 1, 36).reshape(4, 1, 1, 3, 3))
    weights = fake_quantize(values, np.full(shape, -1.0), np.full(shape, 1.0), 255)
    return model(opset1.group_convolution(image(), weights, [1, 1], [1, 1], [1, 1], [1, 1]))


@pytest.mark.parametrize(
    ("shape", "kind", "forbidden"),
    [
        ((4, 1, 1, 1, 1), MarkupCanBeQuantized, False),
        ((4, 1, 1, 1, 3), MarkupCanBeQuantized, True),
        ((4, 1, 1, 1, 3), native.MarkupCanBeQuantized, False),
    ],
    ids=["by output", "by row", "native"],
)
def test_a_convolution_takes_no_integers_where_its_weights_have_other_scales_than_by_output(shape, kind, forbidden):
    """It would decide about the type of data that it then reads as real numbers."""
    graph, attributes = with_weights_by_row(shape), AttributeTable()
    run_pass(graph, kind(attributes=attributes))
    mark = attributes.get(input_key(the(graph, "GroupConvolution"), 0), Precisions)
    assert (mark is not None and mark.value == ()) == forbidden
