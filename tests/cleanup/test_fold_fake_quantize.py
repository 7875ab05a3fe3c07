from __future__ import annotations

import numpy as np
import pytest

from ovlpt.cleanup.fold_fake_quantize import FoldFakeQuantizeTransformation
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, fake_quantize, model, parameter, run


@pytest.mark.parametrize(("shape", "folded"), [((2, 1), True), ((2, 3), False)])
def test_over_a_constant_whose_intervals_vary_along_one_axis(shape, folded):
    high = np.linspace(1, 2, int(np.prod(shape))).reshape(shape)
    quantized = fake_quantize(f32(np.linspace(-2, 2, 6).reshape(2, 3)), -high, high)
    graph = model(opset1.multiply(parameter((2, 3)), quantized))
    (expected,) = run(graph, [np.ones((2, 3), np.float32)])
    run_pass(graph, FoldFakeQuantizeTransformation())
    assert ("FakeQuantize" not in {node.get_type_name() for node in graph.get_ops()}) is folded
    np.testing.assert_allclose(run(graph, [np.ones((2, 3), np.float32)])[0], expected, rtol=1e-6)
