from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, kept_apart, precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import Reason

_LEVELS = 256  # of more a plugin may drop the FakeQuantize, and keep what stands before it
_LARGEST = float(np.finfo(np.float32).max)
_SMALLER = np.float32(2**-16)
_FAR = _LARGEST * (1 - 2**-20)


class WideIntervals(LayerTransformation):
    """``FQ(x)`` of an interval as of a mask of -3.4e38 is that of ``x / 65536``, with a Maximum between, past which no factor is
    fused.

    Kernels compute ``x * scale + shift``, the shift from a bound times the number of steps, which would be infinite, and so
    no number what follows. Likewise the last level of all numbers of f32: such bounds become a millionth less. They also
    round the shift, so that a mask's 0 is one of -1e30, which nothing shows beside: of a constant it is the value.
    """

    quiet = True
    why = Reason("wide_interval", "a bound of its interval times its steps would be infinite")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        ends = [constant_above(value) for value in node.input_values()[1:3]]
        levels = node.get_attributes()["levels"]
        if levels > _LEVELS or precision_of(node.input_value(0)) != "f32" or any(end is None for end in ends):
            return False
        return any(float(np.abs(end).max(initial=0)) * (levels - 1) > _LARGEST for end in ends)

    def can_be_transformed(self, node: Node) -> None:
        """There is nothing to refuse."""

    def transform(self, node: Node) -> None:
        if (folded := folded_constant(node.output(0))) is not None:
            replace_output(node.output(0), constant(folded, precision_of(node.output(0))).output(0))
            return
        data, name = node.input_value(0), node.get_friendly_name()
        alone = kept_apart(opset1.multiply(data, constant(_SMALLER)).output(0))
        alone.set_friendly_name(made_for(name, Made.ALONE))
        for port, value in enumerate(node.input_values()[1:], 1):
            if (bound := constant_above(value)) is not None:
                changed = bound * _SMALLER if port < 3 else np.clip(bound, -_FAR, _FAR)
                node.input(port).replace_source_output(constant(changed, precision_of(value)).output(0))
        node.input(0).replace_source_output(alone.output(0))
