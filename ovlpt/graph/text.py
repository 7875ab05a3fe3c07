"""A model as text, one line a node: the form in which tests, errors and people read graphs.

x: f32[1,3,8,8] = Parameter
q: u8[1,3,8,8] = FakeQuantize(x, 0, 2.55, 0, 255) {levels=256}
c: f32[1,4,6,6] = Convolution(q, i8[4,3,3,3]) {strides=[1, 1], …}
"""

from __future__ import annotations

import difflib

import numpy as np

from ovlpt.graph.constants import precision_of, values_of
from ovlpt.openvino_api import Constant, Model, Node, Output

_HIDDEN = {"type_relax", "input_data_types", "output_data_types", "element_type", "destination_type", "shape"}
_DEFAULTS = {
    "auto_broadcast": "numpy", "strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0],
    "auto_pad": "explicit", "transpose_a": False, "transpose_b": False, "rounding_type": "floor",
}  # fmt: skip


def _number(value: float) -> str:
    return f"{float(value):.6g}"


def _shape(output: Output) -> str:
    return str(output.get_partial_shape()).replace(" ", "")


def _constant(node: Constant) -> str:
    values, precision = values_of(node), precision_of(node.output(0))
    if values.size > 4:
        return f"{precision}{_shape(node.output(0))}"
    text = ",".join(_number(value) for value in np.ravel(values))
    text = text if values.size == 1 else f"[{text}]"
    return text if precision == "f32" else f"{text}:{precision}"


def _value(output: Output) -> str:
    node = output.get_node()
    if isinstance(node, Constant):
        return _constant(node)
    return node.get_friendly_name() + (f".{output.get_index()}" if len(node.outputs()) > 1 else "")


def _line(node: Node) -> str:
    results = ", ".join(f"{precision_of(value)}{_shape(value)}" for value in node.outputs())
    attributes = ", ".join(
        f"{name}={value}"
        for name, value in sorted(node.get_attributes().items())
        if name not in _HIDDEN and _DEFAULTS.get(name) != value
    )
    arguments = ", ".join(_value(value) for value in node.input_values())
    return (
        f"{node.get_friendly_name()}: {results} = {node.get_type_name()}"
        + (f"({arguments})" if arguments else "")
        + (f" {{{attributes}}}" if attributes else "")
    )


def to_text(model: Model) -> str:
    """The nodes of the model in topological order; constants stand where they are used."""
    return "\n".join(_line(node) for node in model.get_ordered_ops() if not isinstance(node, Constant))


def diff(before: str, after: str) -> str:
    """Unified difference of two texts, empty when they are equal."""
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm=""))
