from __future__ import annotations

from ovlpt.layer_transformation import LayerTransformation, replace_output, shape_of
from ovlpt.openvino_api import Node, opset1
from ovlpt.trace import Reason, reject_unless


class PlainPooling(LayerTransformation):
    """A pool whose output size is rounded as PyTorch rounds it (``ceil_torch``), as one of the first opset.

    The padding after ends where the last window ends, and the size is rounded down. A maximum ignores padding, and so
    does an average that excludes it; one that counts it counts only the given padding.
    """

    why = Reason("ceil_torch", "its rounding (ceil_torch) has no int8 kernel; more padding gives the same result")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset14.AvgPool", "opset14.MaxPool"]

    def concerns(self, node: Node) -> bool:
        return node.get_attributes()["rounding_type"] == "ceil_torch"

    def can_be_transformed(self, node: Node) -> None:
        attributes, shapes = node.get_attributes(), [shape_of(node.input_value(0)), shape_of(node.output(0))]
        reject_unless(attributes["auto_pad"] == "explicit", "auto_pad", "its padding is not explicit")
        static = all(shape is not None and None not in shape[2:] for shape in shapes)
        reject_unless(static, "dynamic_shape", "the size of what it pools is not known")
        if node.get_type_name() == "MaxPool":
            plain = all(dilation == 1 for dilation in attributes["dilations"])
            reject_unless(plain, "dilation", "its window is dilated, which opset1 does not support")
            reject_unless(not node.output(1).get_target_inputs(), "indices", "its indices are read")
        pads, kernel, strides = self._pads_end(node), attributes["kernel"], attributes["strides"]
        sizes = [
            (size + begin + end - window) // stride + 1
            for size, begin, end, window, stride in zip(
                shapes[0][2:], attributes["pads_begin"], pads, kernel, strides, strict=True
            )
        ]
        reject_unless(sizes == list(shapes[1][2:]), "pooled_size", f"rounded down, its output size would be {sizes}")
        counts_padding = node.get_type_name() == "AvgPool" and not attributes["exclude-pad"]
        longer = any(end > given for end, given in zip(pads, attributes["pads_end"], strict=True))
        reject_unless(
            not (counts_padding and longer), "counted_padding", "it would divide by a larger count than it does now"
        )

    def transform(self, node: Node) -> None:
        attributes = node.get_attributes()
        window = {
            "strides": attributes["strides"],
            "pads_begin": attributes["pads_begin"],
            "pads_end": self._pads_end(node),
            "kernel_shape": attributes["kernel"],
        }
        if node.get_type_name() == "AvgPool":
            window["exclude_pad"] = attributes["exclude-pad"]
        create = opset1.avg_pool if node.get_type_name() == "AvgPool" else opset1.max_pool
        pool = create(node.input_value(0), **window)
        pool.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), pool.output(0))

    @staticmethod
    def _pads_end(node: Node) -> list[int]:
        """As far as the last windows reach after the data."""
        attributes = node.get_attributes()
        sizes, counts = shape_of(node.input_value(0))[2:], shape_of(node.output(0))[2:]
        window = attributes["strides"], attributes["kernel"], attributes["pads_begin"]
        return [
            max((count - 1) * stride + kernel - size - begin, 0)
            for size, count, stride, kernel, begin in zip(sizes, counts, *window, strict=True)
        ]
