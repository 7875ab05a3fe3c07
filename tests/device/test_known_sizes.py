from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import NodeFactory, opset1, opset8
from tests.conftest import EXACT, inputs_of
from tests.networks import const, int8_weights, model, parameter, quantized


def size(value, axes):
    shape = NodeFactory("opset3").create("ShapeOf", [value.output(0)], {"output_type": "i64"})
    return opset8.gather(shape, const(axes, "i64"), const(0, "i64"))


def network(batch):
    """Scaled by the root of one size, as the queries of an attention are, and reshaped by others."""
    x = parameter([batch, 6, 16])
    rows = quantized(x, -2.56, 2.54)
    root = opset1.power(opset1.convert(size(x, 2), "f32"), const(-0.5))
    scaled = quantized(opset1.multiply(rows, root), -0.64, 0.635)
    layer = opset1.matmul(scaled, int8_weights([16, 16]), False, True)
    sizes = opset1.concat([size(x, [0]), size(x, [2, -2])], 0)
    return model([opset1.reshape(layer, sizes, False)], x)


def test_a_known_size_is_no_layer_with_a_dynamic_batch(core):
    """ShapeOf, Gather, Convert and Power were, and the Multiply that the FakeQuantize else takes in."""
    dynamic, fixed = (
        ovlpt.execution_types(ovlpt.compile_model(network(batch), "CPU", EXACT, core=core)).executed
        for batch in (-1, 2)
    )
    assert len(dynamic) == len(fixed), [layer.name for layer in dynamic]


@pytest.mark.parametrize("native_only", [False, True])
def test_the_numbers_with_a_dynamic_batch(core, native_only):
    net = network(-1)
    inputs = [np.concatenate([*inputs_of(network(1)), *inputs_of(network(1))])]
    mine = ovlpt.compile_model(net, "CPU", EXACT, core=core, native_only=native_only)
    (expected,), (found,) = (list(compiled(inputs).values()) for compiled in (simulate(net, core), mine))
    assert found.shape == (2, 16, 6)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("serializable", [False, True])
def test_a_model_that_may_be_reshaped_reads_its_sizes(serializable):
    transformed = ovlpt.transform(network(-1), serializable=serializable)
    assert any(node.get_type_name() == "Gather" for node in transformed.get_ops()) == serializable
