from __future__ import annotations

import numpy as np
import pytest

from ovlpt.attributes import AttributeTable, Bias
from ovlpt.markup import native
from ovlpt.markup.markup_bias import MarkupBias
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, model
from tests.markup.marking import the
from tests.restricted_networks import convolution, image


@pytest.mark.parametrize(
    ("data", "shape", "is_bias"),
    [
        (convolution, (1, 4, 1, 1), True),
        (convolution, (1, 4, 6, 1), False),  # it varies along two axes
        (opset1.relu, (1, 4, 1, 1), False),  # after no layer with weights
    ],
)
@pytest.mark.parametrize("constant_first", [False, True])
def test_what_a_bias_is(data, shape, is_bias, constant_first):
    inputs = [data(image()), f32(np.ones(shape))]
    graph, attributes = model(opset1.add(*inputs[:: -1 if constant_first else 1])), AttributeTable()
    run_pass(graph, MarkupBias(attributes=attributes))
    assert (attributes.get(the(graph, "Add"), Bias) is not None) is is_bias


@pytest.mark.parametrize("native_only", [False, True])
def test_a_bias_that_is_stored_in_8_bits(native_only):
    """The native library takes such a one into the next interval, where f32 loses what is small beside the sums."""
    stored = opset1.convert(opset1.constant(np.ones((4, 1, 1), np.int8)), "f32")
    shaped = opset1.reshape(opset1.multiply(stored, f32(0.5)), opset1.constant([1, 4, 1, 1]), False)
    graph, attributes = model(opset1.add(convolution(image()), shaped)), AttributeTable()
    kind = native.MarkupBias if native_only else MarkupBias
    run_pass(graph, kind(attributes=attributes))
    assert (attributes.get(the(graph, "Add"), Bias) is None) is native_only
