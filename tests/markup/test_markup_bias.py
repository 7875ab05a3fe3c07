from __future__ import annotations

import numpy as np
import pytest

from ovlpt.attributes import AttributeTable, Bias
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
