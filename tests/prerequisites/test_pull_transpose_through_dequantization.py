from __future__ import annotations

import numpy as np
import pytest

from ovlpt.openvino_api import opset1
from ovlpt.prerequisites.pull_transpose_through_dequantization import PullTransposeThroughDequantization
from tests.conftest import assert_close, run_pass
from tests.graphs import dequantization, i64, model, parameter, run
from tests.prerequisites.graphs import kinds


@pytest.mark.parametrize("zero_point", [None, 3.0, np.float32([[1], [2], [3], [4]])])
def test_weights_are_stored_in_the_order_in_which_they_are_read(zero_point):
    stored = opset1.constant(np.arange(-12, 12, dtype=np.int8).reshape(4, 6))
    turned = opset1.transpose(dequantization(stored, np.float32([[1], [2], [3], [4]]), zero_point, "w"), i64(1, 0))
    graph = model(opset1.matmul(parameter((2, 6)), turned, False, False))
    inputs = [np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)]
    before = run(graph, inputs)
    assert "Transpose" not in kinds(run_pass(graph, PullTransposeThroughDequantization()))
    assert_close(run(graph, inputs), before)


def test_activations_keep_their_transpose():
    graph = model(
        opset1.transpose(dequantization(parameter((4, 6), precision=np.int8), np.float32(0.5), None, "x"), i64(1, 0))
    )
    assert "Transpose" in kinds(run_pass(graph, PullTransposeThroughDequantization()))
