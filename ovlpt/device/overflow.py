"""Which int8 layers can overflow 16 bits on CPUs without VNNI, read from the weights alone.

Without VNNI the x86 kernels multiply u8 data by i8 weights with ``vpmaddubsw``, which adds the products of two
neighbouring input channels in 16 bits and saturates. At the largest data ``255·a + 255·b`` leaves 16 bits exactly where
``|a + b| > 128``. The same holds for i8 data, which the kernels shift to u8 first. `ovlpt.reference.saturation` has the
arithmetic.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ovlpt.device.int8_layers import is_depthwise, is_int8_layer
from ovlpt.graph.constants import precision_of, values_of
from ovlpt.graph.names import given
from ovlpt.openvino_api import Constant, Model, Node, Output
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8
from ovlpt.reference.saturation import risky_pairs

REMEDY = (
    "quantize again with NNCF's advanced_parameters=nncf.AdvancedQuantizationParameters("
    "overflow_fix=nncf.OverflowFix.ENABLE), which keeps the weights of such layers within half of their range"
)


@dataclass(frozen=True, slots=True)
class OverflowRisk:
    """One layer, and the pairs of its weights whose products can leave 16 bits.

    ``channels``: output channels; ``worst``: the largest ``|a + b|``.
    """

    layer: str
    operation: str
    pairs: int
    risky_pairs: int
    channels: int
    risky_channels: int
    worst: int

    @property
    def pair_share(self) -> float:
        return self.risky_pairs / self.pairs

    @property
    def channel_share(self) -> float:
        return self.risky_channels / self.channels

    def __str__(self) -> str:
        return (
            f"{self.risky_channels} of {self.channels} output channels have neighbouring weights that can saturate "
            f"16 bits on a CPU without VNNI ({self.pair_share:.2%} of the pairs, the largest sum {self.worst})"
        )

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "pair_share": self.pair_share, "channel_share": self.channel_share}


def overflow_risks(model: Model) -> list[OverflowRisk]:
    """The layers of a transformed model that can overflow, those with the most output channels concerned first."""
    risks = [_risk(node) for node in model.get_ordered_ops() if is_int8_layer(node)]
    return sorted((risk for risk in risks if risk), key=lambda risk: -risk.channel_share)


def _risk(node: Node) -> OverflowRisk | None:
    weights = _integers(node.input_value(1))
    if precision_of(weights) != "i8" or not isinstance(weights.get_node(), Constant) or is_depthwise(node):
        return None
    paired = _in_pairs(node, weights_by_channel(node, values_of(weights.get_node())))
    risky = risky_pairs(paired)
    if not risky.any():
        return None
    return OverflowRisk(
        layer=given(node.get_friendly_name()),
        operation=node.get_type_name(),
        pairs=risky.size,
        risky_pairs=int(risky.sum()),
        channels=len(risky),
        risky_channels=int(risky.any(axis=1).sum()),
        worst=int(np.abs(paired[:, 0::2] + paired[:, 1::2]).max()),
    )


def _in_pairs(node: Node, weights: np.ndarray) -> np.ndarray:
    """int16 [output channels, K] with K even, in the kernels' order: input channels within positions of the kernel.

    An odd last channel stands alone, but in a GroupConvolution goes with the first of the next position.
    """
    ordered = weights.astype(np.int16).swapaxes(1, 2)
    if node.get_type_name() != "GroupConvolution":
        ordered = _even(ordered)
    return _even(ordered.reshape(len(ordered), -1))


def _even(weights: np.ndarray) -> np.ndarray:
    return np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, weights.shape[-1] % 2)])


def weights_by_channel(node: Node, weights: np.ndarray) -> np.ndarray:
    """[output channels, input channels of each, everything else]."""
    kind = node.get_type_name()
    if kind == "MatMul":
        if weights.ndim == 1:
            weights = weights[:, None]
        elif node.get_attributes()["transpose_b"]:
            weights = weights.swapaxes(-1, -2)
        return weights.swapaxes(-1, -2).reshape(-1, weights.shape[-2], 1)
    row = OPERATIONS[kind]
    weights = np.moveaxis(
        weights, (row.weights_axes[-1], row.input_axis), (-2, -1)
    )  # [groups and kernel in their order, outputs, inputs]
    if kind.startswith("Group"):
        groups, *_, outputs, inputs = weights.shape
        by_channel = np.moveaxis(weights.reshape(groups, -1, outputs, inputs), 1, -1)
        return by_channel.reshape(groups * outputs, inputs, -1)
    return np.moveaxis(weights.reshape(-1, *weights.shape[-2:]), 0, -1)


def _integers(value: Output) -> Output:
    """What is stored, after a zero point and a Convert."""
    while precision_of(value) not in INT8 and value.get_node().get_type_name() in ("Subtract", "Convert"):
        value = value.get_node().input_value(0)
    return value
