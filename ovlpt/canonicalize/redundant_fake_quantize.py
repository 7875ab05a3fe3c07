from __future__ import annotations

import numpy as np

from ovlpt.fake_quantize.definition import fake_quantize
from ovlpt.graph.consumers import is_output
from ovlpt.graph.copies import copied_data, is_of_use
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Node
from ovlpt.operations.values import is_scalar_like
from ovlpt.trace import Reason, reject_unless

_NEAR = 1e-6  # of the interval: what float32 leaves of an equal value
_MOST = 2**16  # values that are tried


class RedundantFakeQuantize(LayerTransformation):
    """``FQ(FQ'(x)) == FQ'(x)``, copying operations between, where each value that FQ' gives is one of FQ's own.

    Any other FakeQuantize rounds, and stays: without it the numbers would differ. One whose consumers compute in low
    precision stays as well: it determines which; but not after a MaxPool alone, whose data it would only take from i8 to u8.
    """

    quiet = True  # of one that stays, what it serves says more
    why = Reason("redundant", "its input lies on its grid already, and no type depends on it")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        if not node.output(0).get_target_inputs():
            return False
        return bool(_quantized(node)) and (_repeats_pooled(node) or not is_of_use(node))

    def can_be_transformed(self, node: Node) -> None:
        details, sources = QuantizationDetails.of(node), _quantized(node)
        value = node.input_value(0)
        is_direct = value.get_node().get_type_name() == "FakeQuantize"
        alone = value.get_node().get_output_size() == len(value.get_target_inputs()) == 1
        reject_unless(alone or not is_output(node.output(0)), "output", "it carries the name of a model output")
        for source in sources:
            before = QuantizationDetails.of(source)
            reject_unless(details and before, "dynamic_intervals", "a bound of the intervals is not a constant")
            ends = (*details.intervals, *before.intervals)
            followed = is_direct or all(map(is_scalar_like, ends))
            reject_unless(followed, "per_channel", "its intervals differ between channels, which are moved before it")
            few = before.levels * max(end.size for end in ends) <= _MOST
            reject_unless(few, "levels", f"there are too many values to try, {before.levels} and more")
            if not is_direct:
                ends = [end.reshape(-1)[0] for end in ends]
            steps = (np.arange(before.levels, dtype=np.float32) / np.float32(before.levels - 1)).reshape(
                -1, *(1 for _ in range(max(np.ndim(end) for end in ends)))
            )
            values = steps * (ends[7] - ends[6]) + ends[6]
            off = np.abs(fake_quantize(values, ends[0], ends[1], ends[2], ends[3], details.levels) - values)
            width = np.maximum(np.abs(ends[6]), np.abs(ends[7]))
            reject_unless(
                (off <= _NEAR * width).all(), "rounds", "it rounds, and no other operation would give its values"
            )

    def transform(self, node: Node) -> None:
        value = node.input_value(0)
        if is_output(node.output(0)):
            value.get_node().set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), value)


def _repeats_pooled(node: Node) -> bool:
    """Whether it quantizes to the one interval that the data of a MaxPool has, which nothing else reads: signed, as of symmetric
    quantization, it would be in i8, and in u8 after the MaxPool for a convolution.
    """
    pool = node.input_value(0).get_node()
    if pool.get_type_name() != "MaxPool" or len(pool.output(0).get_target_inputs()) != 1:
        return False
    source = pool.input_value(0).get_node()
    if source.get_type_name() != "FakeQuantize" or len(source.output(0).get_target_inputs()) != 1:
        return False
    details, before = QuantizationDetails.of(node), QuantizationDetails.of(source)
    return details is not None and before is not None and details.has_interval_of(before)


def _quantized(node: Node) -> list[Node]:
    """The FakeQuantize operations whose values reach it as they are; none where other values reach it."""
    found, pending, seen = [], [node.input_value(0).get_node()], set()
    while pending:
        source = pending.pop()
        if source.get_instance_id() in seen:
            continue
        seen.add(source.get_instance_id())
        if source.get_type_name() == "FakeQuantize":
            found.append(source)
        elif data := copied_data(source):
            pending += [value.get_node() for value in data]
        else:
            return []
    return found
