"""Intel and AMD CPUs (x86-64). Source: the CPU plugin's transformation pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from ovlpt.config import Params, PluginConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.graph.attention import reads_cache
from ovlpt.graph.constants import is_constant_path
from ovlpt.graph.mat_mul import sizes_by_weights
from ovlpt.graph.mvn import spans_whole_channels
from ovlpt.graph.shapes import may_be_open
from ovlpt.openvino_api import RELEASE, Node
from ovlpt.operations import RECURRENT
from ovlpt.predicates import (
    is_asymmetric_on_weights,
    is_asymmetric_quantization,
    is_decompression_multiply,
    marked_as_bias,
)
from ovlpt.trace import Reason

U8, I8, U8_I8 = ("u8",), ("i8",), ("u8", "i8")

# Whether the int8 kernels of an instruction set take i8 activations as well as u8 ones. By the names of
# ONEDNN_MAX_CPU_ISA. Nothing else in the configuration depends on the instruction set.
SIGNED_ACTIVATIONS = {
    "SSE41": False,
    "AVX2": False,
    "AVX2_VNNI": False,
    "AVX2_VNNI_2": True,
    "AVX512_CORE": False,
    "AVX512_CORE_VNNI": False,
    "AVX512_CORE_BF16": False,
    "AVX512_CORE_FP16": False,
    "AVX512_CORE_AMX": True,
    "AVX512_CORE_AMX_FP16": True,
}


# The plugin drops each FakeQuantize of so many levels before anything else. Before 2026.1 it kept them, and they clipped.
DROPPED_LEVELS = frozenset((65536,)) if RELEASE >= (2026, 1) else frozenset()

# What common optimizations leave as it is; else they decompose it, as the plugin does.
KERNELS = {
    "MVN": spans_whole_channels,
    **{kind: lambda _: True for kind in (*RECURRENT, "GRUCell", "RNNCell")},
    "ScaledDotProductAttention": reads_cache,
}


def config(
    signed_activations: bool = False, slow_mat_mul: bool = False, recurrent_kernels: bool = True
) -> PluginConfig:
    """The configuration for a CPU.

    ``signed_activations``: as `SIGNED_ACTIVATIONS` says of its instruction set. ``slow_mat_mul``: as
    `multiplies_slowly` says of this machine, which has no VNNI: sums of two products are cut off at 16 bits, and where the
    weights of a MatMul stand first its data would be the factor whose range is to be halved. ``recurrent_kernels``: as
    `has_recurrent_kernels` says of this machine, which else has no AVX2.
    """
    activations = U8_I8 if signed_activations else U8

    return PluginConfig(
        "CPU with signed activations" if signed_activations else "CPU",
        precision_restrictions=(
            PrecisionsRestriction.create("Convolution", {0: activations, 1: I8}),
            PrecisionsRestriction.create("ConvolutionBackpropData", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("GroupConvolution", _signed_group if signed_activations else _unsigned_group),
            PrecisionsRestriction.create("GroupConvolutionBackpropData", {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("MatMul", _product_of_pairs if slow_mat_mul else {0: U8_I8, 1: I8}),
            PrecisionsRestriction.create("LSTMSequence", {(0, 1): U8}),
            PrecisionsRestriction.create("GRUSequence", {(0, 1): U8}),
        ),
        quantization_restrictions=(
            QuantizationGranularityRestriction.create("Convolution", [0]),
            QuantizationGranularityRestriction.create("ConvolutionBackpropData", [0]),
            QuantizationGranularityRestriction.create("GroupConvolutionBackpropData", [0]),
        ),
        params=Params(mat_mul_as_convolution=slow_mat_mul, recurrent_on_one_grid=True),
        disabled=("MultiplyToGroupConvolutionTransformation",),
        callbacks={
            "AddTransformation": marked_as_bias,  # a bias after the scale is fused by the plugin
            "ConvolutionBackpropDataTransformation": _has_zero_points,
            "GroupConvolutionBackpropDataTransformation": _has_zero_points,
            "FuseConvertTransformation": is_decompression_multiply,
            "FoldConvertTransformation": is_decompression_multiply,
            **(_WITHOUT_VNNI if slow_mat_mul else {}),
            **({} if recurrent_kernels else dict.fromkeys(_OF_RECURRENT_LAYERS, _has_no_recurrent_kernel)),
        },
    )


def _signed_group(node: Node) -> Mapping[int, tuple[str, ...]]:
    return {0: U8_I8, 1: I8}


def _unsigned_group(node: Node) -> Mapping[int, tuple[str, ...]]:
    """Kernels of volumes take signed activations on any processor."""
    rank = node.get_input_partial_shape(0).rank
    return {0: U8_I8 if rank.is_static and rank.get_length() == 5 else U8, 1: I8}


def _product_of_pairs(node: Node) -> Mapping[int, tuple[str, ...]]:
    """One that `_saturates` asks no type of its data, which others read as u8."""
    return {0: I8} if _saturates(node) else {0: U8_I8, 1: I8}


def _saturates(node: Node) -> Reason | None:
    if not is_constant_path(node.input_value(0).get_node()):
        return None
    return Reason(
        "pairs_saturate", "its weights are the first input: without VNNI, sums of two products are cut off at 16 bits"
    )


def _saves_less_than_it_copies(node: Node) -> Reason | None:
    """Where sizes are dynamic the Transposes around a convolution are copies of its rows, and those to it take longer."""
    _, inputs, outputs = sizes_by_weights(node) or (-1, 1, 1)
    if not may_be_open(node.output(0)) or 1 / outputs + _COPIES_OF_DATA / inputs <= 1 / _CHANNELS:
        return None
    return Reason("few_channels", "at dynamic sizes the Transposes around it would be copies, which take what it saves")


# Measured with AVX2 in f32, where 1 / outputs + 1.25 / inputs is 1 / 96 both forms take as long.
_CHANNELS, _COPIES_OF_DATA = 96, 1.25


def _has_no_kernel(node: Node) -> Reason | None:
    """2025.0 has none in int8 for GRUs there, and throws."""
    if node.get_type_name() != "GRUSequence":
        return None
    return Reason("release", "OpenVINO 2025.0 has no int8 kernel for a GRU on CPUs without VNNI; update it")


def _has_no_recurrent_kernel(node: Node) -> Reason:
    return Reason("no_kernel", f"CPUs without AVX2 have no int8 kernel for {node.get_type_name()}")


_OF_RECURRENT_LAYERS = ("RecurrentGrid", "RecurrentCellTransformation")
_WITHOUT_VNNI = {
    "MatMulTransformation": _saturates,
    "MatMulToConvolution": _saves_less_than_it_copies,
    **(dict.fromkeys(_OF_RECURRENT_LAYERS, _has_no_kernel) if RELEASE == (2025, 0) else {}),
}


def _has_zero_points(node: Node) -> bool:
    return is_asymmetric_quantization(node) or is_asymmetric_on_weights(node)
