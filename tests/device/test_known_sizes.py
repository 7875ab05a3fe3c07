from __future__ import annotations

import numpy as np
import pytest
from ovlpt.plugin_config import cpu, this_cpu

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
    config = cpu.config(this_cpu.takes_signed_activations())  # no layer is a convolution
    dynamic, fixed = (
        ovlpt.execution_types(ovlpt.compile_model(network(batch), "CPU", EXACT, config, core=core)).executed
        for batch in (-1, 2)
    )
    assert len(dynamic) == len(fixed), [layer.name for layer in dynamic]
    assert not {layer.layer_type for layer in dynamic} & {"ShapeOf", "Gather", "Convert", "Eltwise"}


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


def _broadcast(axes, batch=-1):
    """A layer that is broadcast along one more axis, to sizes of the input; with two of them, of its sums."""
    x = parameter([batch, 6, 16])
    # by tensor: stock throws on scales by column
    weights = quantized(const(np.linspace(-0.5, 0.5, 256).reshape(16, 16)), -1, 1, 255)
    node = opset1.matmul(quantized(x, -2.56, 2.54), weights, False, True)
    if len(axes) == 2:
        node = opset1.reduce_sum(node, const([1], "i64"), False)
    sizes = [opset8.unsqueeze(size(x, axis), const([0], "i64")) for axis in axes]
    target = opset1.concat([*sizes, const([3], "i64")], 0)
    return model([opset8.broadcast(opset8.unsqueeze(node, const([-1], "i64")), target)], x)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2)])
def test_all_sizes_in_their_order_are_the_shape(core, axes):
    """The plugin alone has no Gather for them either, on 2026.4."""
    net = _broadcast(axes)
    mine = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    gathers = [each.name for each in ovlpt.execution_types(mine).executed if each.layer_type == "Gather"]
    assert len(gathers) == int(len(axes) == 2), gathers
    inputs = inputs_of(_broadcast(axes, 2))
    (expected,), (found,) = (list(compiled(inputs).values()) for compiled in (simulate(net, core), mine))
    assert found.shape == (*np.array([2, 6, 16])[list(axes)], 3)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2)])
def test_a_scale_after_a_layer_that_is_broadcast(core, axes):
    """It was computed by the plugin of sizes that it read anew: a layer more for the scale, and two for the sizes."""
    net = _broadcast(axes)
    config = cpu.config(this_cpu.takes_signed_activations())  # no layer is a convolution
    stock, mine = (
        ovlpt.execution_types(compiled).executed
        for compiled in (
            core.compile_model(net, "CPU", EXACT),
            ovlpt.compile_model(net, "CPU", EXACT, config, core=core),
        )
    )
    assert len(mine) <= len(stock), [layer.name for layer in mine]
    assert not [layer.name for layer in mine if layer.layer_type == "Eltwise"]
