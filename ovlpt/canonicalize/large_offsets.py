from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovlpt.graph.constants import constant_above, kept_apart, meets, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import AFFINE, PASSES_ON
from ovlpt.trace import Reason

_LARGE = 1e4  # of f32, whose digits end at a two-thousandth of one there
_FLOATS = frozenset(("f16", "f32"))
_DATA = frozenset(("Parameter", "ReadValue", "RandomUniform", "Multinomial"))


class LargeOffsets(LayerTransformation):
    """``(1 - mask) * -3e38 + positions``, the positions constant once sizes are known: the sum is kept apart.

    OpenVINO joins the constants, ``mask * 3e38 + (-3e38 + positions)``, and rounds the positions away. The maximum of the
    masking and the least number, which it joins with nothing, stands between them.
    """

    quiet = True
    why = Reason("large_offset", "a constant would be added to a far larger one first, and rounded away")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Add", "opset1.Subtract"]

    def concerns(self, node: Node) -> bool:
        return precision_of(node.output(0)) in _FLOATS and _masked(node) is not None

    def transform(self, node: Node) -> None:
        port = _masked(node)
        value = node.input_value(port)
        alone = kept_apart(value)
        alone.set_friendly_name(made_for(value.get_node().get_friendly_name(), Made.ALONE))
        node.input(port).replace_source_output(alone.output(0))


def _masked(node: Node) -> int | None:
    """The input of a sum that has a large constant in it, where the other one is constant."""
    for port in (0, 1):
        if _offset(node.input_value(port)) >= _LARGE and not meets(
            node.input_value(1 - port).get_node(), _is_data, _above
        ):
            return port
    return None


def _offset(value: Output) -> float:
    """The largest number in ``(x + a) * b``, and the like, where x is 0; 0 for other values."""
    factor, node = 1.0, value.get_node()
    while True:
        kind = node.get_type_name()
        if kind not in AFFINE:
            if kind not in PASSES_ON:
                return 0.0
            node = node.input_value(0).get_node()
            continue
        constants = [constant_above(each) for each in node.input_values()]
        port = next((port for port, values in enumerate(constants) if values is not None and values.size), None)
        if port is None:
            return 0.0
        largest = float(np.abs(constants[port]).max())
        if kind != "Multiply":
            return largest * factor
        factor, node = factor * largest, node.input_value(1 - port).get_node()


def _is_data(node: Node) -> bool:
    return node.get_type_name() in _DATA


def _above(node: Node) -> Iterator[Node]:
    """What the values of a node depend on, once all sizes are known."""
    if node.get_type_name() != "ShapeOf":
        for value in node.input_values():
            if not isinstance(value.get_node(), Constant):
                yield value.get_node()
