"""Which of two quantized inputs keeps its dequantization: shared by Add and Multiply."""

from __future__ import annotations

import numpy as np

from ovlpt.attributes import Bias
from ovlpt.graph.copies import holds_booleans
from ovlpt.graph.dequantization import Dequantization
from ovlpt.layer_transformation import LayerTransformation, read_once, shape_of
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import REAL
from ovlpt.trace import reject_unless

_TARGETS = CONVOLUTIONS | {"MatMul"}


class ElementwiseTransformation(LayerTransformation):
    """Two inputs; the *full* branch keeps a dequantization and computes in float, the *empty* one is read raw."""

    def can_be_transformed(self, node: Node) -> None:
        branches = self.branches(node)
        self._check_products(node)
        quantized = [port for port, branch in enumerate(branches) if not branch.empty]
        reject_unless(quantized, "not_quantized", "neither input has a dequantization")
        self.check_row(node, branches[0])
        reject_unless(
            any(is_per_channel_at_most(branches[port]) for port in quantized),
            "not_per_channel",
            f"the dequantization of input {quantized[0]} varies along an axis other than that of the channels, or has six axes",
        )

    @read_once
    def branches(self, node: Node) -> tuple[Dequantization, Dequantization]:
        return self.dequantization(node, 0), self.dequantization(node, 1)

    def _check_products(self, node: Node) -> None:
        """Whether an input may be a Multiply that is not a dequantization: it may."""

    @staticmethod
    def not_low(port: int, precision: str) -> tuple[str, str]:
        """Code and text of the refusal of a branch that is not in low precision."""
        if precision in REAL:
            return "float_result", f"input {port} is computed in float, and nothing quantizes it"
        return "activation_precision", f"input {port} is {precision}"

    def separate(self, node: Node) -> None:
        """What is done before the last conditions are checked."""

    @read_once
    def full_branch(self, node: Node) -> int | None:
        """The index of the full branch; None where one input is constant.

        The criteria in their order of priority: a branch that alone is in low precision is empty; a branch that alone
        is a mask is full, since in bf16 its zero point would round the other away; a branch that alone has a FakeQuantize
        before its dequantization is full, since that FakeQuantize absorbs the new scale; of two, the
        one with a single consumer is full; a branch of 1x1 space is full where both or neither come from a weighted
        operation (OpenVINO's guide has the smaller volume, which its library compares in this case only); a branch with
        several consumers on its way is empty; the branch after a weighted operation is full; else the first.
        """
        one, other = self.branches(node)
        data = one.data.get_node(), other.data.get_node()
        if isinstance(data[0], Constant) or isinstance(data[1], Constant):
            return None
        quantized = not one.empty and one.is_low_precision, not other.empty and other.is_low_precision
        if quantized[0] != quantized[1]:
            return 1 if quantized[0] else 0
        if not self.params.update_precisions:
            return 1 if not one.empty and other.empty else 0
        masks = self._is_mask(one), self._is_mask(other)
        if masks[0] != masks[1]:
            return 0 if masks[0] else 1
        added = _added_consumers(one, other)
        has_fake_quantize = [source.get_type_name() == "FakeQuantize" for source in data]
        if has_fake_quantize[0] != has_fake_quantize[1]:
            return 0 if has_fake_quantize[0] else 1
        if all(has_fake_quantize):
            several = [consumer_count(source) + extra > 1 for source, extra in zip(data, added, strict=True)]
            if several[0] != several[1]:
                return 1 if several[0] else 0
        parents = [self._weighted_parent(branch.data) for branch in (one, other)]
        is_target = [parent.get_type_name() in _TARGETS for parent in parents]
        if is_target[0] == is_target[1]:
            for index, branch in enumerate((one, other)):
                if _is_broadcast(shape_of(branch.data)):
                    return index
        several = [bool(extra) or _branches_out(*ends) for extra, *ends in zip(added, data, parents, strict=True)]
        if several[0] != several[1]:
            return 1 if several[0] else 0
        if is_target[0] != is_target[1]:
            return 0 if is_target[0] else 1
        return 0

    def _is_mask(self, branch: Dequantization) -> bool:
        return holds_booleans(branch.data)

    def _weighted_parent(self, data: Output) -> Node:
        """The operation after a chain of FakeQuantize, and after its bias."""
        node = data.get_node()
        while node.get_type_name() == "FakeQuantize":
            node = node.input_value(0).get_node()
        if node.get_type_name() == "Add" and self.attributes.get(node, Bias):
            found = self.dequantization(node, 0)
            after = found.data.get_node() if not found.empty else node.input_value(0).get_node()
            if after.get_type_name() in _TARGETS:
                return after
        return node


def consumer_count(node: Node) -> int:
    return sum(len(output.get_target_inputs()) for output in node.outputs())


def _added_consumers(*branches: Dequantization) -> list[int]:
    """How many consumers more the data has, as the native library counts, once shared chains are duplicated. The node
    is then duplicated, too, and both copies read what comes without a dequantization.
    """
    shared = [branch.is_shared and not branch.empty for branch in branches]
    raw = [branch.empty and branch.convert is None for branch in branches]
    return [int(any(shared) and (own or plain)) for own, plain in zip(shared, raw, strict=True)]


def _branches_out(data: Node, parent: Node) -> bool:
    """Whether any node from ``data`` up to ``parent`` has several consumers."""
    node = data
    while True:
        if consumer_count(node) > 1:
            return True
        if node.get_instance_id() == parent.get_instance_id() or node.get_input_size() == 0:
            return False
        node = node.input_value(0).get_node()


def _is_broadcast(shape: tuple[int | None, ...] | None) -> bool:
    """All spatial dimensions are 1."""
    if shape is None:
        return False
    start = 2 if len(shape) > 2 else len(shape) - 1
    return all(size == 1 for size in shape[start:])


def is_per_channel_at_most(found: Dequantization) -> bool:
    """The native ``checkElementwise`` of the scale: one value, or one per channel of what it gives; of five axes at most."""
    if found.scale is None:
        return True
    shape, sizes = shape_of(found.output), found.scale.shape
    if len(sizes) > 5:
        return False
    if found.scale.size == 1 or shape is None:
        return found.scale.size == 1
    channels = shape[found.channel_axis]
    if len(sizes) == 1:
        return sizes[0] == channels
    aligned = (1,) * (len(shape) - len(sizes)) + sizes
    return all(size == (channels if axis == found.channel_axis else 1) for axis, size in enumerate(aligned))


def values_or(found: Dequantization) -> tuple[np.ndarray, np.ndarray]:
    """Zero point and scale, 0 and 1 where they are absent."""
    zero_point = found.zero_point if found.zero_point is not None else np.zeros((), np.float32)
    scale = found.scale if found.scale is not None else np.ones((), np.float32)
    return zero_point, scale
