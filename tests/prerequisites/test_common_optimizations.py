from __future__ import annotations

import numpy as np
import pytest

from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import Model, opset1
from ovlpt.prerequisites.common_optimizations import CommonOptimizations
from tests.graphs import NodeFactory, i64, model, opset3, parameter, run


def attention(mask) -> Model:
    inputs = [parameter((1, 2, 6, 8), name) for name in ("query", "key", "value")]
    names = [each.output(0) for each in (*inputs, mask)]
    return model(NodeFactory("opset13").create("ScaledDotProductAttention", names, {"causal": False}))


@pytest.mark.parametrize("shape", [(1, 1, 6, 6), (1, 6, 6), (6, 6)])
def test_a_mask_whose_leading_axes_are_dropped(shape):
    """The Add reads it with them, as the plugin's own does: it becomes part of what makes the mask."""
    mask = opset1.sigmoid(parameter(shape, "mask"))
    squeezed = opset1.squeeze(mask, i64(*range(len(shape) - 2))) if len(shape) > 2 else mask
    before = attention(squeezed)
    after = before.clone()
    CommonOptimizations().run_on_model(after)
    (add,) = (node for node in after.get_ops() if node.get_type_name() == "Add")
    assert add.input_value(1).get_node().get_type_name() == "Sigmoid"
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal(list(each.get_partial_shape().to_shape())).astype(np.float32) for each in before.inputs
    ]
    assert np.allclose(*(run(each, inputs)[0] for each in (before, after)), atol=1e-5)


def test_a_mask_of_another_shape_stays():
    mask = opset1.reshape(parameter((6, 6, 1, 1), "mask"), i64(6, 6), False)
    graph = attention(mask)
    CommonOptimizations().run_on_model(graph)
    (add,) = (node for node in graph.get_ops() if node.get_type_name() == "Add")
    assert add.input_value(1).get_node().get_type_name() in ("Reshape", "Squeeze")


@pytest.mark.parametrize("batch, expected", [(1, (1, 16, 3, 3)), (-1, (None, 16, 3, 3))])
def test_sizes_that_a_broadcast_settles_stay_known(batch, expected):
    """It moves behind the Add, where its target is the maximum of the data's shape and its own."""
    x = parameter((batch, 16, 1, -1))
    graph = model(opset1.add(opset3.broadcast(x, i64(1, 16, 3, 3)), x))
    CommonOptimizations().run_on_model(graph)
    assert shape_of(graph.output(0)) == expected
    data = np.arange(48, dtype=np.float32).reshape(1, 16, 1, 3)
    np.testing.assert_array_equal(run(graph, [data])[0], np.broadcast_to(2 * data, (1, 16, 3, 3)))
