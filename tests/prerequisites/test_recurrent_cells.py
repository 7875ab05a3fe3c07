"""Recurrent cells as products."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import plugin_config
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.graph.constants import constant
from ovlpt.openvino_api import Model, NodeFactory, opset1
from tests.graphs import f32, fake_quantize, model, parameter, run


def recurrent_cell(kind: str, **attributes) -> Model:
    """A recurrent cell of quantized data and a quantized state."""
    gates, linear = (1 if kind == "RNNCell" else 3), bool(attributes.get("linear_before_reset"))
    data = fake_quantize(parameter((2, 16)), -1.28, 1.27)
    state = fake_quantize(
        opset1.tanh(
            opset1.variadic_split(data, constant(np.array(1), "i64"), constant(np.array([8, 8]), "i64")).output(1)
        ),
        -1.28,
        1.27,
    )
    random = np.random.default_rng(1)
    shapes = ((8 * gates, 16), (8 * gates, 8), (8 * (gates + linear),))
    inputs = [data, state, *(f32(random.uniform(-0.5, 0.5, shape)) for shape in shapes)]
    made = NodeFactory("opset3" if kind == "GRUCell" else "opset1")
    return model(made.create(kind, [each.output(0) for each in inputs], {"hidden_size": 8, **attributes}))


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("RNNCell", {"activations": ["relu"]}),
        ("GRUCell", {"linear_before_reset": False, "activations": ["sigmoid", "tanh"]}),
        ("GRUCell", {"linear_before_reset": True, "activations": ["sigmoid", "tanh"]}),
    ],
)
def test_cells_are_products_where_the_device_has_no_kernel(kind, attributes):
    graph, data = (
        recurrent_cell(kind, **attributes),
        [np.random.default_rng(0).uniform(-1.3, 1.3, (2, 16)).astype(np.float32)],
    )
    parted, kept = graph.clone(), graph.clone()
    CommonOptimizations(plugin_config.kernels("GPU")).run_on_model(parted)
    CommonOptimizations(plugin_config.kernels("CPU")).run_on_model(kept)
    kinds = [[node.get_type_name() for node in each.get_ops()] for each in (parted, kept)]
    assert kind not in kinds[0]
    assert kinds[0].count("MatMul") == (3 if attributes.get("linear_before_reset") is False else 2)
    assert kind in kinds[1]
    for found, expected in zip(run(parted, data), run(graph, data), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_cells_that_do_more_stay_whole():
    graph = recurrent_cell("GRUCell", linear_before_reset=False, activations=["sigmoid", "tanh"], clip=0.3)
    CommonOptimizations(plugin_config.kernels("GPU")).run_on_model(graph)
    assert "GRUCell" in [node.get_type_name() for node in graph.get_ops()]
