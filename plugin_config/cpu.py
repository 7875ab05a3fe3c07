"""Intel CPUs (x86-64). Source: the CPU plugin's transformation pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from ovlpt.config import PluginConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.openvino_api import Node
from ovlpt.predicates import (
    is_asymmetric_on_weights,
    is_asymmetric_quantization,
    is_decompression_multiply,
    marked_as_bias,
)

U8, I8, U8_I8 = ("u8",), ("i8",), ("u8", "i8")


def config(capabilities: Sequence[str] = (), signed_activations: bool = False) -> PluginConfig:
    """The configuration for a CPU.

    ``signed_activations``: its kernels take i8 activations as well as u8 ones (AMX-INT8, AVX2-VNNI-2).
    ``capabilities``: what the device answers to OPTIMIZATION_CAPABILITIES.
    """
    activations = U8_I8 if signed_activations else U8

    def group_convolution(node: Node) -> dict[int, tuple[str, ...]]:
        rank = node.get_input_partial_shape(0).rank
        is_volumetric = rank.is_static and rank.get_length() == 5
        return {0: U8_I8 if is_volumetric else activations, 1: I8}

    def is_asymmetric(node: Node) -> bool:
        return is_asymmetric_quantization(node) or is_asymmetric_on_weights(node)

    return PluginConfig(
        "CPU",
        precision_restrictions=(
            PrecisionsRestriction.create("Convolution", {0: activations, 1: I8}),
            PrecisionsRestriction.create("ConvolutionBackpropData", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("GroupConvolution", group_convolution),
            PrecisionsRestriction.create("GroupConvolutionBackpropData", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("MatMul", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("LSTMSequence", {(0, 1): U8}),
            PrecisionsRestriction.create("GRUSequence", {(0, 1): U8}),
        ),
        quantization_restrictions=(
            QuantizationGranularityRestriction.create("Convolution", [0]),
            QuantizationGranularityRestriction.create("ConvolutionBackpropData", [0]),
            QuantizationGranularityRestriction.create("GroupConvolutionBackpropData", [0]),
        ),
        disabled=("MultiplyToGroupConvolutionTransformation",),
        callbacks={
            "AddTransformation": marked_as_bias,  # a bias behind the scale is fused by the plugin
            "ConvolutionBackpropDataTransformation": is_asymmetric,
            "GroupConvolutionBackpropDataTransformation": is_asymmetric,
            "FuseConvertTransformation": is_decompression_multiply,
            "FoldConvertTransformation": is_decompression_multiply,
        },
    )
