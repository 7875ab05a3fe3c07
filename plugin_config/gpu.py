"""Intel GPUs. Source: the GPU plugin's transformation pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ovlpt.config import Params, PluginConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import read_dequantization
from ovlpt.graph.mvn import spans_last_axes
from ovlpt.openvino_api import RELEASE, Node
from ovlpt.operations.families import CONVOLUTIONS
from ovlpt.precisions import INT8
from ovlpt.predicates import (
    can_be_transformed_to_group_convolution,
    is_asymmetric_on_weights,
    is_asymmetric_quantization,
    is_dynamic_or_scalar,
)

U8_I8, I8 = ("u8", "i8"), ("i8",)
# What common optimizations leave as it is; else they decompose it, as the plugin does.
KERNELS = {
    "GroupNormalization": lambda _: True,
    "MVN": spans_last_axes,
    "LSTMSequence": lambda node: node.get_attributes()["direction"] != "bidirectional",
    "GRUSequence": lambda node: node.get_attributes()["direction"] != "bidirectional",
}
# The plugin drops each FakeQuantize of so many levels before anything else.
DROPPED_LEVELS = frozenset((65536,)) if RELEASE >= (2025, 4) else frozenset()
_HEADS = range(64, 257, 16)  # sizes of the heads that the fused attention takes
# Releases since 2025 have no kernel of PRelu on integers. A shuffle of channels is one kernel; pieces of it are one each.
DISABLED = (
    "ChannelShuffles",
    "RecurrentCellTransformation",
    *(("PReluTransformation",) if RELEASE >= (2025, 0) else ()),
)
_CONVOLUTIONS = tuple(sorted(CONVOLUTIONS | {"ConvolutionBackpropData"}))


def config(systolic: bool = False) -> PluginConfig:
    """The configuration for a GPU with int8.

    ``systolic``: it multiplies matrices in hardware (XMX; the capability GPU_HW_MATMUL). A Reshape before a MatMul
    then keeps its dequantization before it.
    """
    return PluginConfig(
        "GPU with systolic hardware" if systolic else "GPU",
        precision_restrictions=(
            *(PrecisionsRestriction.create(kind, {0: U8_I8, 1: I8}) for kind in _CONVOLUTIONS),
            PrecisionsRestriction.create("GroupConvolutionBackpropData", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("LSTMSequence"),
            PrecisionsRestriction.create("GRUSequence"),
        ),
        quantization_restrictions=(
            QuantizationGranularityRestriction.create("Convolution", [0]),
            QuantizationGranularityRestriction.create("ConvolutionBackpropData", [0]),
            QuantizationGranularityRestriction.create("GroupConvolutionBackpropData", [0]),
        ),
        params=Params(reshape_ignore_per_tensor_quantization_check=systolic),
        disabled=DISABLED,
        callbacks={
            "MarkupPrecisions": _is_other_multiply,
            "ConvolutionBackpropDataTransformation": _is_unfit_deconvolution,
            "GroupConvolutionBackpropDataTransformation": _is_unfit_group_deconvolution,
            "TransposeTransformation": _feeds_attention,
            "FoldConvertTransformation": _restores_weights,
            "FuseConvertTransformation": _restores_weights,
            "MultiplyToGroupConvolutionTransformation": _is_fused_as_multiply,
        },
    )


def kernels(settings: PluginConfig, floats: str) -> Mapping[str, Callable[[Node], bool]]:
    """`KERNELS`, and with ``floats`` in f16 the fused attention, in which the plugin's own LPT leaves it, too.

    As one layer in f16 it neither writes nor reads the scores of all queries and keys; decomposed, its first MatMul
    runs
    in int8, beside Transposes and a Softmax. On matrix engines, where the fused attention is machine code that nothing but
    such a GPU runs, it is decomposed (`config`).
    """
    systolic = settings.params.reshape_ignore_per_tensor_quantization_check
    return KERNELS if systolic or floats != "f16" else KERNELS | {"ScaledDotProductAttention": _is_fused_attention}


def _is_fused_attention(node: Node) -> bool:
    """Queries, keys and values are of four axes, with the same known number of heads and a size that the kernel takes.

    Source: the GPU plugin's callback of the decomposition.
    """
    shapes = [node.get_input_partial_shape(port) for port in range(3)]
    if any(shape.rank.is_dynamic or len(shape) != 4 or shape[1].is_dynamic or shape[3].is_dynamic for shape in shapes):
        return False
    heads, sizes = ({shape[axis].get_length() for shape in shapes} for axis in (1, 3))
    return len(heads) == len(sizes) == 1 and sizes.pop() in _HEADS


def _is_other_multiply(node: Node) -> bool:
    return node.get_type_name() == "Multiply" and not can_be_transformed_to_group_convolution(node)


def _is_unfit_deconvolution(node: Node) -> bool:
    """The int8 kernel takes input channels by 4 and output channels by 16, and no zero points."""
    for shape, step in ((node.get_input_partial_shape(0), 4), (node.get_output_partial_shape(0), 16)):
        if shape.rank.is_dynamic or len(shape) < 2 or shape[1].is_dynamic or shape[1].get_length() % step:
            return True
    return is_asymmetric_quantization(node) or is_asymmetric_on_weights(node)


def _is_unfit_group_deconvolution(node: Node) -> bool:
    """The int8 kernels take the same channels of each group, or groups of one; those for others are references.

    They take images and volumes. Found by running: the plugin's own LPT has no rule for the operation.
    """
    shape = node.get_input_partial_shape(1)
    if shape.is_dynamic or len(shape) not in (5, 6):
        return True
    _, inputs, outputs, *_ = shape.to_shape()
    fits = inputs == outputs == 1 or (inputs % 4 == 0 and outputs % 16 == 0)
    return not fits or is_asymmetric_quantization(node) or is_asymmetric_on_weights(node)


def _feeds_attention(node: Node) -> bool:
    return any(consumer.get_type_name() == "ScaledDotProductAttention" for consumer in readers_of(node))


def _is_fused_as_multiply(node: Node) -> bool:
    """The operation before it has no other consumer, so the Multiply becomes part of that layer; or it is a scalar."""
    found = read_dequantization(node.output(0), INT8)
    alone = not found.empty and len(found.data.get_node().output(0).get_target_inputs()) == 1
    return alone or is_dynamic_or_scalar(node)


def _restores_weights(node: Node) -> bool:
    """A Multiply, or the Subtract that it alone reads, after compressed weights, directly or through a Reshape."""
    if node.get_type_name() == "Subtract":
        consumers = readers_of(node)
        return len(consumers) == 1 and consumers[0].get_type_name() == "Multiply" and _restores_weights(consumers[0])
    consumers = readers_of(node)
    if consumers and all(consumer.get_type_name() in ("Reshape", "Convert") for consumer in consumers):
        consumers = [each for consumer in consumers for each in readers_of(consumer)]
    reader = next((each for each in consumers if each.get_type_name() in ("MatMul", "Gather", *_CONVOLUTIONS)), None)
    if node.get_type_name() != "Multiply" or reader is None:
        return False
    return reader.get_type_name() not in _CONVOLUTIONS or reader.get_input_partial_shape(0).is_static
