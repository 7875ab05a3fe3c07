"""Further forms in which models are stored, and variables that keep values between inferences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, constant_above, converted, precision_of, same_operation
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, PartialShape
from tools.fuzz.operations import FRAMES, frames_axis, i64
from tools.fuzz.shifts import activations, quantizer


def pairs_in_f32(model: Model) -> None:
    """In a model of f16: each quantization computes in f32 between Converts, as ModelOpt's files have it."""
    for node in activations(model):
        quantize = quantizer(node)
        value = converted(quantize.input_value(0), "f32").output(0)
        ends = [constant(constant_above(end)).output(0) for end in list(quantize.input_values())[1:]]
        made = same_operation(quantize, [value, *ends])
        for link in _links(quantize, node):
            made = _in_f32(link, made.output(0))
        targets = node.output(0).get_target_inputs()
        back = converted(made.output(0), "f16")
        for target in targets:
            target.replace_source_output(back.output(0))
        name, names = node.get_friendly_name(), set(node.output(0).get_names())
        node.set_friendly_name(name + "/f16")
        made.set_friendly_name(name)
        node.output(0).get_tensor().set_names(set())
        back.output(0).get_tensor().set_names(names)


def _links(quantize: Node, node: Node) -> list[Node]:
    """What follows a FakeQuantize up to the end of its pair."""
    links: list[Node] = []
    while node.get_instance_id() != quantize.get_instance_id():
        links.insert(0, node)
        node = node.input_value(0).get_node()
    return links


def _in_f32(link: Node, value: Output) -> Node:
    if link.get_type_name() == "Convert":
        kind = precision_of(link.output(0))
        return converted(value, "f32" if kind == "f16" else kind)
    others = [other for other in list(link.input_values())[1:]]
    real = precision_of(value) == "f32"
    return same_operation(
        link, [value, *(constant(constant_above(other)).output(0) if real else other for other in others)]
    )


def constants_in_bf16(model: Model) -> None:
    """Each tensor of real numbers before a Convert, but for the ends of intervals."""
    for node in model.get_ordered_ops():
        if not isinstance(node, Constant) or precision_of(node.output(0)) != "f32" or node.data.size < 2:
            continue
        targets = node.output(0).get_target_inputs()
        if any(target.get_node().get_type_name() in ("FakeQuantize", "ReadValue") for target in targets):
            continue
        wide = converted(constant(node.data, "bf16").output(0), "f32")
        for target in targets:
            target.replace_source_output(wide.output(0))


def remember(joined: Node, kind: str, name: str) -> Node:
    """Make a variable of the past that ``joined``, a step of `STATES`, begins with; the Assign that keeps it."""
    reader = past_of(joined)
    shape = PartialShape(reader.get_source_output().get_shape())
    axis = frames_axis(kind, joined.get_output_shape(0))
    if kind == "Cache":
        shape[axis] = -1
    attributes = {"variable_id": name, "variable_type": precision_of(joined.output(0)), "variable_shape": shape}
    read = NodeFactory("opset6").create("ReadValue", [reader.get_source_output()], attributes)
    reader.replace_source_output(read.output(0))
    kept = joined.output(0)
    if kind != "Cache":
        inputs = [kept, *(each.output(0) for each in (i64([-FRAMES]), i64([2**31]), i64([1]), i64([axis])))]
        kept = NodeFactory("opset8").create("Slice", inputs, {}).output(0)
    return NodeFactory("opset6").create("Assign", [kept], {"variable_id": name})


def past_of(joined: Node) -> Any:
    """The input that reads the past."""
    reader = joined.input(0)
    above = reader.get_source_output().get_node()
    return above.input(0) if above.get_type_name() == "Gather" else reader


def kept_of(kind: str, values: np.ndarray) -> np.ndarray:
    """What a variable holds after an inference in which the step of ``kind`` had these values."""
    if kind == "Cache":
        return values
    axis = frames_axis(kind, values.shape)
    return np.take(values, range(values.shape[axis] - FRAMES, values.shape[axis]), axis)
