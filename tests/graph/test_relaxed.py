from __future__ import annotations

import numpy as np
import pytest

from ovlpt.graph import relaxed as relaxed_nodes
from ovlpt.graph.relaxed import can_be_relaxed, is_relaxed, read_templates_of, relaxed, relaxed_like
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, Model, NodeFactory, opset1
from ovlpt.trace import Rejected
from tests.networks import const, parameter

CONVOLUTION = {"strides": [2, 2], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "auto_pad": "explicit"}


def test_mixed_types_and_attributes():
    data, weights = parameter([1, 3, 8, 8], "u8"), const(np.ones((4, 3, 3, 3)), "i8")
    node = relaxed("Convolution", [data.output(0), weights.output(0)], "f32", CONVOLUTION)
    assert is_relaxed(node)
    assert str(node.get_output_partial_shape(0)) == "[1,4,4,4]"
    assert node.get_output_element_type(0).get_type_name() == "f32"
    assert {key: node.get_attributes()[key] for key in CONVOLUTION} == CONVOLUTION


def test_it_survives_clone_and_reshape():
    data = parameter([1, 3, 8, 8], "u8")
    node = relaxed("Convolution", [data.output(0), const(np.ones((4, 3, 3, 3)), "i8").output(0)], "f32", CONVOLUTION)
    clone = Model([opset1.result(node)], [data], "net").clone()
    clone.reshape([2, 3, 16, 16])
    copied = clone.get_results()[0].input_value(0).get_node()
    assert is_relaxed(copied)
    assert str(copied.get_output_partial_shape(0)) == "[2,4,8,8]"
    assert copied.get_output_element_type(0).get_type_name() == "f32"


def test_nodes_of_one_template_are_independent():
    first, second = parameter([1, 4], "u8"), parameter([3, 4], "i8")
    nodes = [
        relaxed("Multiply", [data.output(0), const(2.0).output(0)], "f32", {"auto_broadcast": "numpy"})
        for data in (first, second)
    ]
    assert [str(node.get_output_partial_shape(0)) for node in nodes] == ["[1,4]", "[3,4]"]
    assert len({node.get_friendly_name() for node in nodes}) == 2


@pytest.mark.parametrize("strides", [[1, 1], [2, 2]], ids=["as it was read", "set on a clone"])
def test_many_nodes_of_one_kind(strides):
    """They come from templates of one node and of several, and no value has the name of a template's Result."""
    attributes = {**CONVOLUTION, "strides": strides}
    data, weights = parameter([1, 3, 8, 8], "u8"), const(np.ones((4, 3, 3, 3)), "i8")
    nodes = [relaxed("Convolution", [data.output(0), weights.output(0)], "f32", attributes) for _ in range(20)]
    assert len(data.output(0).get_target_inputs()) == 20
    for node in nodes:
        assert node.get_attributes() == {**attributes, "type_relax": True}
        assert not node.output(0).get_names()
        assert str(node.get_output_partial_shape(0)) == f"[1,4,{8 // strides[0]},{8 // strides[0]}]"


def test_axes_keep_their_type():
    """Read as f32, the axis 3 would become a number beyond every rank."""
    plain = opset1.reduce_mean(parameter([1, 2, 4, 8]), const([3], "i64"), True)
    node = relaxed_like(plain, [parameter([1, 2, 4, 8], "u8").output(0), plain.input_value(1)], "f32")
    assert str(node.get_output_partial_shape(0)) == "[1,2,4,1]"
    assert node.get_friendly_name() == plain.get_friendly_name()


@pytest.mark.skipif(RELAXES_EVERY_OPSET, reason="this release can relax every version")
def test_it_refuses_what_it_would_read_as_another_version():
    attributes = {"eps": 1e-6, "normalize_variance": True, "eps_mode": "inside_sqrt"}
    with pytest.raises(Rejected, match="cannot make a type-relaxed MVN of opset6"):
        relaxed("MVN", [parameter([1, 8], "u8").output(0), const([1], "i64").output(0)], "f32", attributes, "opset6")


@pytest.mark.parametrize(("opset", "kind", "known"), [("opset1", "ReduceMean", True), ("opset4", "ReduceL1", False)])
def test_what_openvino_cannot_relax(opset, kind, known):
    inputs = [parameter([1, 3, 8]).output(0), const([2], "i64").output(0)]
    assert can_be_relaxed(NodeFactory(opset).create(kind, inputs, {"keep_dims": True})) is known


def test_templates_of_a_network_are_read_at_once(monkeypatch):
    """Zero points, which its operations do not show, among them; what is read once is not read again."""
    readings = []
    reads = relaxed_nodes._read_templates
    monkeypatch.setattr(relaxed_nodes, "_read", {})
    monkeypatch.setattr(relaxed_nodes, "_templates", {})
    monkeypatch.setattr(relaxed_nodes, "_read_templates", lambda forms: readings.append(len(forms)) or reads(forms))
    read_templates_of({"PRelu", "Parameter"})
    data, other = parameter([1, 4], "u8").output(0), const(2.0).output(0)
    relaxed("PRelu", [data, other], "f32", {})
    relaxed("Subtract", [data, other], "f32", {"auto_broadcast": "numpy"})
    read_templates_of({"PRelu"})
    assert readings == [2]
