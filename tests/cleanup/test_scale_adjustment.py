from __future__ import annotations

import numpy as np
import pytest

from ovlpt.cleanup import native
from ovlpt.cleanup.scale_adjustment import ScaleAdjustment
from ovlpt.openvino_api import opset1
from ovlpt.trace import Rejected
from tests.graphs import f32, i64, model, opset6, parameter, run

X = np.random.default_rng(0).uniform(-1, 1, (1, 3, 8)).astype(np.float32)


def adjusted(end, kind=ScaleAdjustment):
    """Outputs before and after the product of data and a constant is divided by 8, with what reads it."""
    product = opset1.multiply(parameter((1, 3, 8)), f32(100.0))
    graph = model(end(product))
    (before,) = run(graph, [X])
    adjustment = kind(8.0)
    adjustment.find(product.output(0))
    adjustment.apply()
    constant = product.input_value(1).get_node()
    assert constant.data.item() == 12.5
    return before, run(graph, [X])[0]


def normalized(data):
    return opset6.mvn(opset1.relu(data), i64(2), True, 0.1, "inside_sqrt")


def test_a_normalization_gives_what_it_gave():
    before, after = adjusted(normalized)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("end", [opset1.sigmoid, lambda data: opset1.softmax(data, 1)])
def test_what_a_scale_changes_ends_it(end):
    with pytest.raises(Rejected):
        adjusted(end)


def test_as_native_softmax_is_taken_for_a_normalization():
    before, after = adjusted(lambda data: opset1.softmax(data, 1), native.ScaleAdjustment)
    assert np.abs(after - before).max() > 0.1
