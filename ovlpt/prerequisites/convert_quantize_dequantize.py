from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.dequantization import Dequantization, read_dequantization
from ovlpt.graph.quantization_details import interval_end
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node, opset1
from ovlpt.precisions import INT8, INT16, NUMPY
from ovlpt.trace import reject_unless


class ConvertQuantizeDequantize(LayerTransformation):
    """``FakeQuantize → Convert (to integers) → Convert → Subtract → Multiply`` becomes one FakeQuantize.

    ``FQ(x)`` to the whole range ``[l, h]`` of the integers, less ``z``, times ``s`` is ``FQ(x)`` to ``[(l - z) s, (h - z) s]``.
    Source: the native pass of the same name, which plugins run before their LPT with a callback that leaves alone what
    LPT takes as it is (`ovlpt.predicates.are_quantize_and_dequantize_supported_for_multiply`). Not in `CommonOptimizations`,
    whose MOC transformations make one FakeQuantize of every such pair.

    ``precisions``: of the integers between, names of element types. ``ignore_consumers``: also where others read a part
    of the chain, which then stays for them.
    """

    quiet = True  # most multiplications end no pair

    def __init__(
        self, *args, precisions: Collection[str] = (*INT8, *INT16), ignore_consumers: bool = False, **settings
    ):
        super().__init__(*args, **settings)
        self.precisions = tuple(precisions)
        self.ignore_consumers = ignore_consumers

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Multiply"]

    def can_be_transformed(self, node: Node) -> None:
        found = read_dequantization(node.output(0), self.precisions)
        stored = found.data.get_node()
        reject_unless(found.multiply is not None and found.convert is not None, "no_scale", "it restores no integers")
        reject_unless(
            stored.get_type_name() == "Convert", "no_fake_quantize", "its integers are not quantized before it"
        )
        quantize = stored.input_value(0).get_node()
        reject_unless(quantize.get_type_name() == "FakeQuantize", "no_fake_quantize", "no FakeQuantize before it")
        low, high = _range(found)
        reject_unless(
            quantize.get_attributes()["levels"] == high - low + 1,
            "levels",
            f"the FakeQuantize does not have the {high - low + 1} levels of {found.data_precision}",
        )
        ends = [interval_end(quantize.input_value(port)) for port in (3, 4)]
        reject_unless(
            all(end is not None and end.data.size == 1 for end in ends)
            and [float(end.data.reshape(())) for end in ends] == [low, high],
            "quantization_differs",
            f"the FakeQuantize does not give the range of {found.data_precision}",
        )
        links = [link for link in (quantize, stored, found.convert, found.subtract) if link is not None]
        reject_unless(
            self.ignore_consumers or all(len(link.output(0).get_target_inputs()) == 1 for link in links),
            "several_consumers",
            "the chain has other consumers",
        )
        reject_unless(
            node.get_output_partial_shape(0) == quantize.get_output_partial_shape(0),
            "broadcast",
            "a constant broadcasts the data",
        )

    def transform(self, node: Node) -> None:
        found = read_dequantization(node.output(0), self.precisions)
        quantize, precision = found.data.get_node().input_value(0).get_node(), precision_of(node.output(0))
        shift = np.float32(0) if found.zero_point is None else found.zero_point
        with np.errstate(over="ignore"):  # of a mask in 16 bits
            ends = [constant((np.float32(end) - shift) * found.scale, precision) for end in _range(found)]
        levels = quantize.get_attributes()["levels"]
        fused = opset1.fake_quantize(*list(quantize.input_values())[:3], *ends, levels)
        fused.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), fused.output(0))


def _range(found: Dequantization) -> tuple[int, int]:
    """Of the integers that the chain restores."""
    limits = np.iinfo(NUMPY[found.data_precision])
    return int(limits.min), int(limits.max)
