from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import Reason

_WHOLE = {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 0, "shrink_axis_mask": 0}  # of an axis that is kept whole


class SpelledEllipses(LayerTransformation):
    """The ellipsis of a StridedSlice of three axes, ``x[..., 1:3]``, as the whole axes that it stands for.

    In bf16 the CPU plugin reads other values, or ends the process, on all releases, but where axes are added.
    """

    quiet = True
    why = Reason("ellipsis", "in bf16 its ellipsis would be read as other values, or end the process")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.StridedSlice"]

    def concerns(self, node: Node) -> bool:
        attributes = node.get_attributes()
        return (
            any(attributes["ellipsis_mask"])
            and not any(attributes["new_axis_mask"])
            and len(shape_of(node.input_value(0)) or ()) == 3
            and all(constant_above(value) is not None for value in node.input_values()[1:])
        )

    def transform(self, node: Node) -> None:
        attributes, ends = node.get_attributes(), [constant_above(value) for value in node.input_values()[1:]]
        count, at = ends[0].size, attributes["ellipsis_mask"].index(1)
        axes = 3 - (count - 1)  # that it stands for

        def spelled(values: np.ndarray, whole: int) -> np.ndarray:
            return np.concatenate([values[:at], np.full(axes, whole, values.dtype), values[at + 1 :]])

        masks = {name: np.resize([*attributes[name], *[0] * count], count) for name in _WHOLE}
        sliced = opset1.strided_slice(
            node.input_value(0),
            *(constant(spelled(values, 1), "i64") for values in (*ends, np.ones(count, np.int64))[:3]),
            *(spelled(mask, _WHOLE[name]).tolist() for name, mask in masks.items()),
            [0] * 3,
        )
        sliced.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), sliced.output(0))
