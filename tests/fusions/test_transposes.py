"""Transposes sink after elementwise operations and meet their inverses."""

from __future__ import annotations

from ovlpt.fusions import fuse
from ovlpt.openvino_api import Model, opset1
from tests.fusions import networks as net
from tests.fusions.networks import c, index, kinds, model_of, to_nchw, to_nhwc


def test_activations_and_sums(fused) -> None:
    x, z = net.parameter([1, 4, 3, 3]), net.parameter([1, 4, 3, 3], "z")
    y = opset1.add(opset1.relu(to_nhwc(x)), opset1.multiply(to_nhwc(z), c(2.0)))
    model, _ = fused(model_of(to_nchw(opset1.clamp(y, -1.0, 1.0)), x, z))
    assert kinds(model) == {"Relu": 1, "Multiply": 1, "Add": 1, "Clamp": 1}


def test_output_keeps_its_name(fused) -> None:
    x = net.parameter([1, 4, 3, 3])
    model, _ = fused(model_of(opset1.relu(to_nhwc(x)), x))
    assert [node.get_type_name() for node in model.get_ordered_ops() if node.get_friendly_name() == "y"] == [
        "Transpose"
    ]


def test_other_operands_hold_it_back(fused) -> None:
    """A constant per channel, another order, no Transpose at all."""
    x, z = net.parameter([1, 4, 4, 4]), net.parameter([1, 4, 4, 4], "z")
    for other in (c([1, 2, 3, 4]), z, opset1.transpose(z, index([0, 3, 1, 2]))):
        model = model_of(to_nchw(opset1.add(to_nhwc(x), other)), x, z)
        before = kinds(model)
        result, trace = fused(model)
        assert kinds(result) == before
        assert not trace.events


def test_inverse_with_other_readers_and_on_an_input(fused) -> None:
    x = net.parameter([1, 4, 3, 3])
    last = to_nhwc(opset1.relu(x))
    model = Model([opset1.result(opset1.tanh(to_nchw(last))), opset1.result(last)], [x], "two")
    model.outputs[0].get_tensor().set_names({"a"})
    assert kinds(fuse(model)) == {"Relu": 1, "Transpose": 1, "Tanh": 1}
    result, trace = fused(model_of(to_nchw(to_nhwc(x)), x))
    assert kinds(result) == {"Transpose": 2}
    assert {event.reason.code for event in trace} == {"output"}
