from __future__ import annotations

import numpy as np
import pytest

from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.pull_reshape_through_dequantization import (
    PullReshapeThroughDequantization,
    reshaped_with,
)
from tests.conftest import assert_close, run_pass
from tests.graphs import dequantization, i64, model, parameter, run
from tests.prerequisites.graphs import kinds

STORED = np.arange(-12, 12).reshape(4, 6)


def weights(scale, zero_point, shape: tuple[int, ...]) -> Model:
    """A MatMul with weights that are stored in another shape."""
    restored = opset1.reshape(
        dequantization(opset1.constant(STORED.astype(np.int8)), scale, zero_point, "w"), i64(*shape), False
    )
    return model(opset1.matmul(parameter((2, shape[-2])), restored, False, False))


@pytest.mark.parametrize("zero_point", [None, 3.0])
@pytest.mark.parametrize("scale", [np.float32(0.5), np.float32([[1], [2], [3], [4]])])
def test_weights_are_stored_as_they_are_read(scale, zero_point):
    graph = weights(scale, zero_point, (2, 2, 6))
    inputs = [np.random.default_rng(0).standard_normal((2, 2)).astype(np.float32)]
    before = run(graph, inputs)
    assert "Reshape" not in kinds(run_pass(graph, PullReshapeThroughDequantization()))
    assert_close(run(graph, inputs), before)


def test_scales_that_would_not_broadcast_stay():
    graph = weights(np.arange(1, 7, dtype=np.float32).reshape(1, 6), None, (8, 3))
    assert "Reshape" in kinds(run_pass(graph, PullReshapeThroughDequantization()))


@pytest.mark.parametrize(
    ("shape", "before", "after", "expected"),
    [
        ((4, 1), (4, 6), (2, 2, 6), [2, 2, 1]),
        ((1, 1), (4, 6), (24,), [1]),
        ((6,), (4, 6), (4, 2, 3), [1, 2, 3]),
        ((6,), (4, 6), (8, 3), None),
    ],
)
def test_reshaped_with(shape, before, after, expected):
    found = reshaped_with(np.ones(shape), before, after)
    assert (found if found is None else list(found.shape)) == expected
