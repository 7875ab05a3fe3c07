from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import Reason

_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask")


class SpelledEllipses(LayerTransformation):
    """The ellipsis of a StridedSlice of three axes, ``x[..., 1:3]``, as the whole axes that it stands for.

    In bf16 the CPU plugin reads other values, or ends the process, on all releases.
    """

    quiet = True
    why = Reason("ellipsis", "in bf16 its ellipsis would be read as other values, or end the process")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.StridedSlice"]

    def concerns(self, node: Node) -> bool:
        return (
            any(node.get_attributes()["ellipsis_mask"])
            and len(shape_of(node.input_value(0)) or ()) == 3
            and all(constant_above(value) is not None for value in node.input_values()[1:])
        )

    def can_be_transformed(self, node: Node) -> None:
        """There is nothing to refuse."""

    def transform(self, node: Node) -> None:
        attributes, ends = node.get_attributes(), [constant_above(value) for value in node.input_values()[1:]]
        count = ends[0].size
        masks = {name: np.resize(np.append(attributes[name], [0] * count), count) for name in _MASKS}
        at = attributes["ellipsis_mask"].index(1)
        given = np.arange(count) != at
        axes = 3 - np.count_nonzero(given & (masks["new_axis_mask"] == 0))

        def spelled(values: np.ndarray, whole: int) -> np.ndarray:
            return np.concatenate([values[:at], np.full(axes, whole, values.dtype), values[at + 1 :]])

        wholes = dict(zip(_MASKS, (1, 1, 0, 0), strict=True))
        sliced = opset1.strided_slice(
            node.input_value(0),
            *(constant(spelled(values, 1), "i64") for values in (*ends, np.ones(count, np.int64))[:3]),
            *(spelled(masks[name], wholes[name]).tolist() for name in _MASKS),
            [0] * (count - 1 + axes),
        )
        sliced.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), sliced.output(0))
