"""The rules of the lowering: one row each, in the order in which they are tried, and with the reason that the trace gives.

A plugin runs its common optimizations before it would run LPT, and they do not expect type-relaxed operations. All
rules were found by running; each function says more of what happens without it.

On a GPU the rules were tried on virtual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from ovlpt import plugin_config
from ovlpt.device import this_cpu
from ovlpt.device.lowering import (
    element_types,
    fake_quantize,
    float_types,
    folding,
    gpu,
    guards,
    half,
    hiding,
    kernels,
    mat_mul,
    parts,
    recurrent,
    reductions,
    reshaping,
    rows,
    scales,
    sharing,
    variables,
    windows,
    zero_points,
)
from ovlpt.operations import RECURRENT, WEIGHTED
from ovlpt.operations.families import CONVOLUTIONS, DECONVOLUTIONS
from ovlpt.plugin_config.this_cpu import takes_signed_activations


class Phase(StrEnum):
    """When a rule is tried, and on what. Each phase runs over the whole model before the next begins."""

    TYPES = "types"  # nodes, before anything else
    RELAXED = "relaxed"  # relaxed operations
    ALL = "all"  # operations that are relaxed or not, once what follows the layers is guarded
    MODEL = "model"  # the model
    BODIES = "bodies"  # each body, and the model


ANY = frozenset[str]()  # operations: all of them
_CPU, _GPU, _BOTH = ("CPU",), ("GPU",), ("CPU", "GPU")


@dataclass(frozen=True)
class Rule:
    """One row.

    ``apply``: changes the graph around a node, of one of ``operations``, and gives the node that then stands there; None
    where there is nothing to change. In the phases of whole models it takes the model, and gives the nodes that it has
    changed. ``defect``: what the plugin would do without it. ``saved_only``: only in a model that may be saved.
    ``lpt_on``: only where the plugin's own LPT is on, or off. ``precision``: only where a GPU runs what is not in low
    precision in this type; of a CPU "f16" is known where it is asked for. ``for_speed``: it changes no number, and what is
    faster depends on the CPU: only in a model that is compiled here. ``here``: only where this is true of the CPU at hand, or
    in a model that may be saved, and come to any. ``in_float``: it may leave a layer in float because the plugin computes it
    wrongly in int8.
    """

    apply: Callable[..., Any]
    operations: frozenset[str]
    devices: tuple[str, ...]
    defect: str
    phase: Phase = Phase.RELAXED
    saved_only: bool = False
    lpt_on: bool | None = None
    precision: str | None = None
    for_speed: bool = False
    here: Callable[[], bool] | None = None
    in_float: bool = False

    @property
    def name(self) -> str:
        return getattr(self.apply, "func", self.apply).__name__


def _rule(apply: Callable, operations: str | Iterable[str], devices: tuple[str, ...], defect: str, **more) -> Rule:
    names = operations.split() if isinstance(operations, str) else operations
    return Rule(apply, frozenset(names), devices, defect, **more)


RULES = (
    _rule(
        element_types.report_f32, ANY, _BOTH,
        "a relaxed operation would still report f16 where the plugin turns f16 into f32", phase=Phase.TYPES,
    ),
    _rule(
        scales.constant_second, "Add Multiply Subtract", _CPU,
        "what later rules keep apart would be fused where the constant is the first input: wrong numbers",
        phase=Phase.TYPES,
    ),
    _rule(
        guards.drop_idle, "Add Broadcast Concat Convert Pad Select Tile Transpose", _CPU,
        "the plugin would drop it, and fuse what follows it into a layer that no rule has kept it from: wrong numbers",
        phase=Phase.TYPES,
    ),
    _rule(
        reshaping.transpose_alone, "Reshape Squeeze", _BOTH,
        "common optimizations would take it for a shuffle of channels whose number is open, and throw", phase=Phase.TYPES,
    ),
    _rule(
        zero_points.clamp_after_zero_point, "Clamp", _BOTH,
        "the dequantization after the Clamp would be multiplied out, and real zeros would not stay 0", phase=Phase.TYPES,
    ),
    _rule(
        fake_quantize.dequantize_before_moves, "Multiply", _CPU,
        "the zero points of an attention's queries, keys and values would be layers of their own, after a Transpose of integers each",
        phase=Phase.TYPES,
    ),
    _rule(
        guards.part_from_broadcast, "Add", _CPU,
        "a layer would take in a sum that is broadcast once its sizes are known, which throws", phase=Phase.TYPES,
    ),
    _rule(
        guards.normalize_by_groups, "GroupNormalization", _CPU,
        "in one Subgraph with what computes the tensor that it is added to or multiplied with, the process ends",
        phase=Phase.TYPES,
    ),
    _rule(
        sharing.join_layers, WEIGHTED | {"Multiply"}, _CPU,
        "equal layers of dynamic sizes would be one with the scale that was meant for one reader, and equal scales one that is rounded: "
        "wrong numbers",
        phase=Phase.TYPES,
    ),
    _rule(
        sharing.negate_scaled, "Multiply", _CPU,
        "what is subtracted from itself would be rounded to bf16 on one side alone: its rounding would be left", phase=Phase.TYPES,
    ),
    _rule(
        kernels.clip_a_line, "HardSigmoid", _CPU,
        "a HardSigmoid would be a layer of its own in a slow kernel, and in bf16 two more would convert its data",
        phase=Phase.TYPES,
    ),
    # layers with weights: their data and form
    _rule(
        zero_points.tell_channels, "Convolution", _CPU,
        "a layer of one channel that no size tells would run in float with its zero point, or throw in bf16",
    ),
    _rule(
        zero_points.pad_before_zero_point, CONVOLUTIONS, _CPU,
        "a convolution over three axes, in groups or of one channel, would pad data with a zero point wrongly: wrong numbers",
        in_float=True,
    ),
    _rule(
        zero_points.pad_with_one_zero_point, CONVOLUTIONS, _CPU,
        "in the padding all zero points of a block of channels would be those of its first four: wrong numbers",
        in_float=True,
    ),
    _rule(
        zero_points.read_float_weights, CONVOLUTIONS, _CPU,
        "a layer in float whose result is quantized would read integer weights as they are stored, and there is no such kernel: it throws",
    ),
    _rule(
        zero_points.pad_before_data, CONVOLUTIONS, _GPU,
        "padding at the end only would be 0 instead of the zero point: wrong numbers",
    ),
    _rule(
        windows.as_first_version, "AvgPool", _BOTH,
        "the plugin would make a pool of the first version, which is not relaxed, and throw",
    ),
    _rule(
        windows.take_padding, CONVOLUTIONS | {"AvgPool"}, _BOTH,
        "the plugin would make a layer that is not relaxed of a Pad and the layer, which throws",
    ),
    _rule(
        kernels.repeat_channels, "GroupConvolution", _CPU,
        "several outputs of a channel would be cut to 16 bits, be zero or infinite, or be read from the wrong rows: wrong numbers",
    ),
    _rule(
        windows.pool_strides, CONVOLUTIONS, _CPU,
        "with AVX2 threads of a strided 1x1 layer would write into each other's data: wrong numbers, in some inferences",
        here=this_cpu.gathers_strides,
    ),
    _rule(
        windows.join_groups, "GroupConvolution", _CPU,
        "groups of odd sizes would see padding alone in gemm, which is wrong in bf16 and before activations", phase=Phase.TYPES,
    ),
    _rule(
        windows.see_padding_alone, CONVOLUTIONS, _CPU,
        "a window that covers padding only would read and write beyond its memory: wrong numbers",
    ),
    _rule(
        kernels.leave_amx, CONVOLUTIONS, _CPU,
        "kernels of AMX would read other rows where a stride leaves one column, lose the zero point of groups, or read beside data: wrong numbers",
        here=takes_signed_activations,
    ),
    _rule(
        kernels.leave_avx512, "GroupConvolution", _CPU,
        "from 2026.1 to 2026.3 a kernel of AVX-512 for groups of one channel over three axes would end the process",
    ),
    _rule(
        windows.span_whole_strides, DECONVOLUTIONS, _CPU,
        "a transposed convolution whose width is no multiple of its stride would sum up its last columns wrongly: wrong numbers",
    ),
    _rule(
        windows.cover_every_place, DECONVOLUTIONS, _CPU,
        "what no tap of a transposed convolution reaches would not be quantized: wrong numbers",
    ),
    _rule(
        kernels.read_one_channel, "Convolution", _CPU,
        "before OpenVINO 2026.4, with AMX, padded columns of one channel would be counted wrongly in bf16: wrong numbers",
        here=takes_signed_activations,
    ),
    _rule(
        kernels.read_few_channels, "Convolution", _CPU,
        "a layer of two to four channels would run in a slower kernel, on CPUs with VNNI", for_speed=True,
    ),
    _rule(
        mat_mul.absorb_transposes, "MatMul", _BOTH,
        "the plugin would fuse a Transpose into a MatMul that is not relaxed",
    ),
    _rule(
        parts.dequantize_before_parts, "MatMul", _CPU,
        "in bf16 what a Split, Gather or Transpose leaves of a product would stay in f32 up to its zero point, in extra layers",
    ),
    _rule(
        mat_mul.run_at_rank_3, "MatMul", _CPU,
        "after a MatMul of rank 4 no per-channel constant would be fused",
    ),
    _rule(
        mat_mul.run_vector_at_rank_3, "MatMul", _CPU,
        "nothing after the product of a vector would be part of its layer",
    ),
    _rule(
        mat_mul.run_column_at_rank_3, "MatMul", _CPU,
        "a Subgraph of two MatMuls, one column between them, would have no layout: it throws",
    ),
    _rule(
        mat_mul.run_apart_from_attention, "MatMul", _CPU,
        "before 2025.1 an attention in one Subgraph would have no kernel for integers on CPUs without VNNI: it throws",
    ),
    _rule(
        mat_mul.lay_weights_in_rows, "MatMul", _CPU,
        "optimizing the saved model again would make a MatMul that is not relaxed", saved_only=True,
    ),
    _rule(
        mat_mul.give_weights_two_axes, "MatMul", _GPU,
        "sums with weights of one matrix with more axes would be integers of 8 bits: wrong numbers, or it throws",
    ),
    _rule(
        mat_mul.lay_weights_in_rows, "MatMul", _GPU,
        "the plugin would add a Transpose of the weights, and make a MatMul that is not relaxed",
    ),
    _rule(
        mat_mul.run_columns_at_rank_3, "MatMul", _GPU,
        "after a MatMul of rank 4 per-column constants would be read as their first value: wrong numbers",
    ),
    _rule(
        gpu.transpose_before_quantization, "MatMul", _GPU,
        "the plugin would add a Transpose of quantized data, and make a MatMul that is not relaxed, which throws",
    ),
    _rule(
        gpu.keep_weights_zero_point, WEIGHTED, _GPU,
        "weights with a zero point would be folded to floats, and a float kernel would read integers",
    ),
    # layers with weights: what follows them
    _rule(
        float_types.keep_product, "MatMul", _CPU,
        "a product of integers would be rounded to bf16 before a zero point that its layer does not fuse: little of it would be left",
        precision="f32",
    ),
    _rule(
        scales.dequantize_before_broadcast, WEIGHTED, _CPU,
        "scale and shift would be moved before the Broadcast and read wrongly at dynamic sizes of one element: wrong numbers; "
        "open sizes would be computed anew",
    ),
    _rule(
        scales.dequantize_before_reshape, CONVOLUTIONS | DECONVOLUTIONS, _CPU,
        "before floats the scale would be a layer of its own, after the Reshape",
    ),
    _rule(
        scales.ask_for_shape_after_scale, WEIGHTED, _CPU,
        "once sizes are known, the scale would be fused with what keeps it from the layer: wrong numbers",
    ),
    _rule(
        scales.add_negative_shift, WEIGHTED, _CPU,
        "later rules look for an Add",
    ),
    _rule(
        scales.shift_after_scale, WEIGHTED, _CPU,
        "a shift before the scale would not become the layer's bias",
    ),
    _rule(
        mat_mul.quantize_before_reshape, "MatMul", _CPU,
        "a quantization after a Reshape of the result would be a layer of its own",
    ),
    _rule(
        scales.scale_after_interval, "MatMul", _CPU,
        "with one thread a per-column FakeQuantize, or a scale after one, would be read from the wrong place: wrong numbers",
    ),
    _rule(
        scales.scale_open_rows_after_interval, "MatMul", _CPU,
        "likewise of a saved model of open rows that is reshaped to a few: wrong numbers", saved_only=True,
    ),
    _rule(
        scales.scale_to_interval, CONVOLUTIONS | {"MatMul"}, _CPU,
        "a per-channel interval would be read wrongly at dynamic sizes of one element, and after a MatMul: wrong numbers",
    ),
    _rule(
        scales.scale_before_interval, "MatMul", _CPU,
        "with one thread a per-column FakeQuantize would be read from the wrong place: wrong numbers",
    ),
    _rule(
        scales.scale_open_rows_before_interval, "MatMul", _CPU,
        "likewise of a saved model of open rows that is reshaped to a few: wrong numbers", saved_only=True,
    ),
    _rule(
        guards.compute_by_channel, CONVOLUTIONS, _CPU,
        "per-channel constants would be read wrongly at dynamic sizes of one element: wrong numbers",
    ),
    _rule(
        kernels.leave_amx_before_channels, "Convolution GroupConvolution", _CPU,
        "a kernel of AMX would read beside what is by channel after a 1x1 convolution with a zero point, or throw after groups",
        here=takes_signed_activations,
    ),
    _rule(
        kernels.leave_amx_for_signed_data, "Convolution GroupConvolution", _CPU,
        "with AMX a convolution of signed data would read weights laid out for another kernel when sizes change: wrong numbers",
        here=takes_signed_activations,
    ),
    _rule(
        guards.part_from_slopes, "GroupConvolution", _CPU,
        "with AVX-512 and VNNI a PRelu by channel after a depthwise layer, dilated or over one axis, would read other slopes: wrong numbers",
        here=this_cpu.has_vnni_of_512_bits,
    ),
    _rule(
        guards.part_by_column, "MatMul", _CPU,
        "a MatMul of two tensors would read per-column constants from beyond their array: wrong numbers",
    ),
    _rule(
        scales.keep_negative_scale_after_relu, WEIGHTED, _BOTH,
        "a negative scale would be moved before the Relu: wrong numbers",
    ),
    _rule(
        scales.compute_scale_in_f64, WEIGHTED, _CPU,
        "the scale would be fused into the integer weights, which throws, and the bias into the next FakeQuantize",
    ),
    _rule(
        gpu.guard_scale, WEIGHTED, _GPU,
        "the scale would be fused into the integer weights, which throws",
    ),
    # other relaxed operations
    _rule(
        element_types.round_in_f32, "FakeQuantize", _BOTH,
        "a FakeQuantize with 65536 levels would be dropped, and its reader would get f16 instead of f32, which throws",
    ),
    _rule(
        fake_quantize.bypass_relu, "FakeQuantize", _BOTH,
        "the Relu would be fused into a FakeQuantize that reports floats: wrong numbers",
    ),
    _rule(
        fake_quantize.join_dequantization, "FakeQuantize", _BOTH,
        "a CPU would store the integers in vain, and a GPU would fuse the scale into the FakeQuantize, which throws",
    ),
    _rule(
        fake_quantize.requantize_floats, "FakeQuantize", _CPU,
        "integers that are quantized again would be stored, and converted in an extra layer",
    ),
    _rule(
        fake_quantize.subtract_before_floats, "FakeQuantize", _CPU,
        "integers before a layer in float would be stored, and their zero point subtracted in extra layers",
    ),
    _rule(
        element_types.clamp_in_f32, "Clamp", _CPU,
        "the Clamp would be dropped before a FakeQuantize, which then reports another type, or its bounds be rounded to integers",
    ),
    _rule(
        element_types.needless_clamp_in_f32, "Clamp", _GPU,
        "the Clamp would be dropped before a FakeQuantize, which then reports another type",
    ),
    *(
        _rule(
            partial(element_types.mvn_in_f32, is_kernel=plugin_config.kernels(device)["MVN"]), "MVN", (device,),
            "an MVN that the plugin decomposes would be computed in the integer type of its data",
        )
        for device in _BOTH
    ),
    _rule(
        reductions.join_reductions, "ReduceMean ReduceSum", _BOTH,
        "two reductions would be merged into one that is not relaxed, which throws",
    ),
    _rule(
        element_types.reduce_in_f32, "ReduceMean ReduceSum", _BOTH,
        "several reductions of one would each be merged with it into one that is not relaxed, which throws",
    ),
    _rule(
        reductions.scale_in_f64, "ReduceMean ReduceSum", _CPU,
        "the scale would be fused into float weights, and in bf16 a Reorder would follow the reduction",
    ),
    _rule(
        reductions.pool_alone, "AvgPool", _CPU,
        "a pool with few outputs would read the interval of a FakeQuantize wrongly, or throw: wrong numbers",
    ),
    _rule(
        element_types.normalize_in_f32, "NormalizeL2", _CPU,
        "a NormalizeL2 that the plugin decomposes would be computed in the integer type of its data",
    ),
    _rule(
        element_types.scale_in_f32, "Multiply", _CPU,
        "the scale would be fused into float weights, which throws, or an Add after it would be computed in the integer type",
    ),
    _rule(
        gpu.scale_in_f32_before_weights, "Multiply", _GPU,
        "the scale would be fused into float weights, which throws, or one of one be dropped, and an output be of integers",
    ),
    _rule(
        element_types.add_in_f32, "Add", _CPU,
        "two Adds would be merged into one that is not relaxed, which throws",
    ),
    _rule(
        zero_points.broadcast_before_zero_point, "Subtract", _BOTH,
        "a Broadcast before the zero point would be dropped, and the layer would throw or run in float",
    ),
    _rule(
        zero_points.tile_before_scale, "Multiply", _BOTH,
        "the scale would be moved before the Broadcast and fused into the FakeQuantize, which would round real values: wrong numbers",
    ),
    _rule(
        zero_points.add_zero_point, "Subtract", _CPU,
        "the zero point would get a Convert, which in bf16 is a layer of its own, and equal ones would be merged into one that stores floats",
    ),
    _rule(
        zero_points.subtract_signed_in_f32, "Subtract", _CPU,
        "a zero point of i8 data would be subtracted in i8, which saturates: wrong numbers",
    ),
    _rule(
        zero_points.subtract_in_f32, "Subtract", _CPU,
        "subtracting f32 from integers or f16 throws, and the zero point of a float layer with dynamic sizes ends the process",
    ),
    _rule(
        gpu.guard_negative, "Add", _GPU,
        "integers plus negated floats would become a Subtract that is not relaxed, which throws",
    ),
    _rule(
        gpu.add_negative, "Subtract", _GPU,
        "subtracting f32 from integers or f16 throws",
    ),
    # operations that are relaxed or not
    _rule(
        element_types.convert_by_f64, "Convert", _CPU,
        "integers before float MatMuls would be taken for weights, and their Convert would stay a layer", phase=Phase.ALL,
    ),
    _rule(
        zero_points.add_zero_point_of_floats, "Subtract", _CPU,
        "the Convert before the zero point of floats would be a layer of its own in bf16", phase=Phase.ALL,
    ),
    _rule(
        folding.fold_float_weights, WEIGHTED, _CPU,
        "weights that stay in float would be dequantized in extra layers", phase=Phase.ALL,
    ),
    _rule(
        folding.fold_misread_weights, "MatMul", _CPU,
        "the kernel for compressed weights would read rows or blocks that fill no whole bytes from elsewhere: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        folding.fold_weights_beside_blocks, "MatMul", _CPU,
        "the kernel for compressed weights would read other memory for inputs that fill no blocks, with AMX, or scale them wrongly",
        phase=Phase.ALL, here=this_cpu.misreads_compressed_weights,
    ),
    _rule(
        folding.fold_misread_weights, "Convolution", _GPU,
        "a 1x1 convolution beside a Reshape or Transpose would become a MatMul of other data: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        folding.fold_weights_of_f16, "MatMul", _CPU,
        "with several streams and dynamic sizes a layer would read other numbers than its weights: wrong numbers, in some inferences",
        phase=Phase.ALL, precision="f16",
    ),
    _rule(
        folding.fold_fake_quantized_weights, WEIGHTED, _CPU,
        "the plugin's own LPT would make integers of the weights of a layer in float", phase=Phase.ALL, saved_only=True,
    ),
    _rule(
        zero_points.keep_stride, "Convolution", _BOTH,
        "the stride of a 1x1 convolution would be moved before its zero point, padding or Split: a pool more, in float, or wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        reductions.reduce_alone, reductions.REDUCTIONS, _CPU,
        "a reduction would read per-channel constants after it wrongly: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        reductions.reduce_joined_apart, "ReduceMax ReduceMin", _CPU,
        "before 2026.1 a reduction along the axis of a Concat of two tensors would be dropped: of another shape, or it throws",
        phase=Phase.ALL,
    ),
    _rule(
        reductions.pool_to_one_alone, "AdaptiveMaxPool", _CPU,
        "a pool to one element would become a reduction that takes a FakeQuantize to integers wrongly: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        reductions.tile_channels_apart, "Tile", _CPU,
        "channels that are made of one of open sizes, with more rows or columns, would be read in another order: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        reductions.widen_pool_apart, "AvgPool MaxPool", _CPU,
        "channels that are made of the one of a pool would be read in another order, where it is quantized, too: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        guards.normalize_apart, "BatchNormInference", _CPU,
        "its scales and shifts would be fused into an interval of dynamic sizes, the first ones for all: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.quantize_apart_from_attention, "FakeQuantize", _CPU,
        "an attention of few rows and many columns, quantized after it, would write beyond its memory: the process ends",
        phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.compute_in_steps, "FakeQuantize", _CPU,
        "there is no FakeQuantize kernel along an axis other than the channels: it throws, or gives wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.store_integers, "FakeQuantize", _CPU,
        "what several operations read of a layer would be stored in floats, and in bf16 lose a part of each level",
        phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.multiply_integers, "FakeQuantize", _CPU,
        "a quantized factor would be stored in floats, and in bf16 lose a part of each level", phase=Phase.ALL,
    ),
    _rule(
        recurrent.drop_grid_of_stored, "FakeQuantize", _CPU,
        "stored integers would be quantized to themselves in an extra layer", phase=Phase.ALL,
    ),
    _rule(
        recurrent.quantize_after_transpose, RECURRENT, _CPU,
        "a recurrent layer whose data or states are transposed as integers would run in float", phase=Phase.ALL,
    ),
    _rule(
        recurrent.read_after_transpose, "LSTMSequence GRUSequence", _CPU,
        "a recurrent layer of integers that were pooled or computed before a Transpose would run in float", phase=Phase.ALL,
    ),
    _rule(
        recurrent.slice_data, RECURRENT, _CPU,
        "a recurrent layer after a VariadicSplit would take its number of steps from the first part, which throws", phase=Phase.ALL,
    ),
    _rule(
        recurrent.one_direction_each, RECURRENT, _CPU,
        "the plugin would rename both directions, and their layers could not be found by name", phase=Phase.ALL,
    ),
    _rule(
        reshaping.lay_channels_last, "Transpose", _CPU,
        "each sum after a convolution whose channels are moved to the end would keep the order of its memory, between two Reorders",
        phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.keep_after_transpose, "FakeQuantize", _CPU,
        "a per-channel FakeQuantize would be moved before the Transpose, to another axis", phase=Phase.ALL,
    ),
    _rule(
        scales.keep_shift_before_scale, "Multiply", _CPU,
        "in bf16 a mask with several readers would be rounded, or overflow, before its shift: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        guards.part_from_sum, "GroupConvolution", _CPU,
        "with a sum fused into a depthwise layer, per-channel constants would be read wrongly at dynamic sizes of one element: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        float_types.keep_embeddings, "Add", _CPU,
        "in bf16 a sum of embeddings would get an order of memory that each sum after it keeps, between two Reorders",
        phase=Phase.ALL, precision="f32",
    ),
    _rule(
        float_types.keep_depthwise, "GroupConvolution", _CPU,
        "a depthwise layer of bf16 over one axis would read a per-channel interval from elsewhere: wrong numbers",
        phase=Phase.ALL, precision="f32",
    ),
    _rule(
        windows.read_only_column, CONVOLUTIONS, _CPU,
        "with AVX-512 a convolution of floats of one channel would read other rows where a stride leaves one column, or may: wrong numbers",
        phase=Phase.ALL, here=this_cpu.has_512_bits,
    ),
    _rule(
        float_types.keep_from_amx, "Convolution GroupConvolution", _CPU,
        "kernels of AMX would read other rows in bf16 where a stride leaves one column, or beside short data: wrong numbers",
        phase=Phase.ALL, here=takes_signed_activations, precision="f32",
    ),
    _rule(
        guards.part_from_gemm, "GroupConvolution", _CPU,
        "but for AVX-512 with VNNI, gemm would read what is by channel after an activation from elsewhere: wrong numbers; so with AMX",
        phase=Phase.ALL, here=this_cpu.runs_few_channels_by_gemm,
    ),
    _rule(
        guards.part_open_floats_by_channel, CONVOLUTIONS, _CPU,
        "a convolution in bf16 would read per-channel constants wrongly at dynamic sizes of one element: wrong numbers",
        phase=Phase.ALL, here=this_cpu.computes_in_bf16,
    ),
    _rule(
        guards.part_open_from_sum, "Convolution GroupConvolution", _CPU,
        "fused into a convolution of floats of open sizes, a sum with integers would throw, and a small layer be lost: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        guards.part_from_negative_scale, "FakeQuantize", _CPU,
        "after a pool the scale of the first channel would be used for all where one is negative: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        guards.part_from_clamp, "FakeQuantize", _CPU,
        "an interval that a Clamp's values all lie outside of would be left for the end of the Clamp: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        guards.part_coarse_from_sum, "FakeQuantize", _CPU,
        "a layer that takes in a sum as well would not round to the levels of a FakeQuantize: wrong numbers where there are few",
        phase=Phase.ALL,
    ),
    _rule(
        guards.part_open_columns, "MatMul", _CPU,
        "a MatMul with a dynamic number of columns would fuse per-column constants, and throw", phase=Phase.ALL,
    ),
    _rule(
        kernels.leave_amx_for_activations, DECONVOLUTIONS, _CPU,
        "a kernel of AMX would apply the first of several post-operations of a transposed convolution alone: wrong numbers",
        phase=Phase.ALL, here=takes_signed_activations,
    ),
    _rule(
        mat_mul.part_products_of_two_types, "MatMul", _CPU,
        "with AMX, in bf16, an attention would compute its second product with the tiles of the first, of other types: wrong numbers",
        phase=Phase.ALL, here=takes_signed_activations, precision="f32",
    ),
    _rule(
        mat_mul.part_products_at_ends, "MatMul", _CPU,
        "in 2025.3 and 2025.4, in bf16, an attention would take inputs for bf16, or throw, as before outputs: wrong numbers",
        phase=Phase.ALL, here=this_cpu.computes_in_bf16, precision="f32",
    ),
    _rule(
        guards.part_from_row, "MatMul", _CPU,
        "with AVX-512 and VNNI, or AMX, the kernel of an attention would read a mask of one row from elsewhere: wrong numbers",
        phase=Phase.ALL, here=this_cpu.has_vnni_of_512_bits,
    ),
    _rule(
        guards.keep_factor_by_position, CONVOLUTIONS, _BOTH,
        "a factor by row or column would be moved into the weights, if the kernel has as many: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        rows.part_by_head, "MatMul", _CPU,
        "a MatMul would read a constant per head as one per column: it throws, or gives wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        scales.part_float_products, "MatMul", _CPU,
        "in bf16, with one thread, a FakeQuantize of floats and constants by column would be read from the wrong place: wrong numbers",
        phase=Phase.ALL, here=this_cpu.computes_in_bf16,
    ),
    _rule(
        scales.part_single_column, "MatMul", _CPU,
        "with one thread a MatMul of floats that gives one column would throw before another MatMul", phase=Phase.ALL,
    ),
    _rule(
        rows.widen_before_mask, "MatMul", _CPU,
        "a constant by head or row before a mask of known columns would let an attention of open lengths throw", phase=Phase.ALL,
    ),
    _rule(
        rows.part_from_vector, "MatMul", _CPU,
        "a factor after a float MatMul with a vector would be folded into the vector as a row, which throws", phase=Phase.ALL,
    ),
    _rule(
        guards.part_from_short_rows, "Multiply", _CPU,
        "before 2026.3 a kernel for what is divided by its root mean square would not stop in rows of less than 16: the process ends",
        phase=Phase.ALL,
    ),
    _rule(
        guards.wait_for_branches, "If", _CPU,
        "a layer after an If of dynamic sizes would read what lay in its memory: wrong numbers in the first inference",
        phase=Phase.ALL,
    ),
    _rule(
        rows.quantize_rows_alone, "FakeQuantize", _CPU,
        "a per-row interval or zero point would be read as a per-column one: it throws, or gives wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.keep_scale_before, "FakeQuantize", _CPU,
        "a FakeQuantize of dynamic sizes would be moved up to a per-channel scale and read it wrongly: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.keep_transpose, "FakeQuantize", _CPU,
        "a Transpose would be moved after the FakeQuantize and a reduction, which throws, or gives wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        fake_quantize.differ_by_channel, "FakeQuantize", _CPU,
        "with dynamic sizes the scale of the first channel would be used for all channels: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        folding.fold_quantized_constant, "FakeQuantize", _GPU,
        "weights that stay in float would be quantized in f16, and those of groups by intervals that are not theirs: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        gpu.quantize_over_three_axes, "FakeQuantize", _GPU,
        "an interval along a spatial axis of five axes or more would be read wrongly: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        gpu.guard_second_factor, "MatMul", _GPU,
        "quantized floats would be taken for weights, and their Transpose would be lost, which throws", phase=Phase.ALL,
    ),
    _rule(
        mat_mul.run_rows_apart, "MatMul", _GPU,
        "after a MatMul of rank 4 and dynamic sizes, constants per row or head would be read wrongly: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        mat_mul.run_vector_as_row, "MatMul", _GPU,
        "the quantization of a vector would be a layer of its own, with the first channel's interval: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        gpu.quantize_vector_as_row, "FakeQuantize", _GPU,
        "a vector would be quantized with the first channel's interval: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        gpu.lay_slopes_along_channels, "PRelu", _GPU,
        "with dynamic sizes, slopes in a vector would be read wrongly: wrong numbers", phase=Phase.ALL,
    ),
    _rule(
        gpu.shift_open_row, "Add Subtract", _GPU,
        "a constant that tells the dynamic size of a row would be taken for a bias, which throws", phase=Phase.ALL,
    ),
    _rule(
        gpu.quantize_outputs_apart, "FakeQuantize", _GPU,
        "with dynamic sizes, equal quantizations of a recurrent layer's states would be taken for one: wrong numbers",
        phase=Phase.ALL,
    ),
    _rule(
        gpu.hide_end, "FakeQuantize", _GPU,
        "the plugin's own LPT would transform the model a second time", phase=Phase.ALL,
    ),
    # models
    _rule(
        zero_points.keep_apart, "Subtract", _CPU,
        "equal zero points of one tensor would be merged, and one would be lost: wrong numbers", phase=Phase.MODEL,
    ),
    _rule(
        zero_points.keep_apart, "Subtract", _GPU,
        "equal zero points of one tensor would be merged, and one would be lost: wrong numbers",
        phase=Phase.MODEL, precision="f32",
    ),
    _rule(
        zero_points.unmark_dequantization, "Convert Multiply Subtract", _CPU,
        "a dequantization before floats would be layers of its own, and scales of weights in f8e8m0 would throw",
        phase=Phase.BODIES,
    ),
    _rule(
        half.keep_sums_in_f32, ANY, _GPU,
        "sums of integers, and their scales, would be rounded to f16, or overflow it",
        phase=Phase.MODEL, precision="f16",
    ),
    _rule(
        float_types.keep_sums, "MatMul", _CPU,
        "sums for zero points nearly cancel a product of integers, and little of it would be left in bf16",
        phase=Phase.BODIES, precision="f32",
    ),
    _rule(
        float_types.spread_factors, "Multiply Add", _CPU,
        "before 2026.3 what keeps sums for zero points in f32 would be lost from a saved model: in bf16 little of a product is left",
        phase=Phase.BODIES, saved_only=True, precision="f32",
    ),
    _rule(
        gpu.run_groups_over_two_axes, "GroupConvolution", _GPU,
        "groups over one axis, in a model with dynamic sizes, would be read wrongly in the first inferences, or throw: wrong numbers",
        phase=Phase.BODIES,
    ),
    _rule(
        variables.keep_products_together, "Assign", _CPU,
        "with a cache of keys and values, each MatMul of an attention would be a separate layer", phase=Phase.MODEL,
    ),
    _rule(
        recurrent.tell_apart, RECURRENT, _CPU,
        "of two recurrent layers of one size the second would have the scales of the first: wrong numbers",
        phase=Phase.MODEL, lpt_on=True,
    ),
    _rule(
        hiding.hide_real_values, "FakeQuantize", _CPU,
        "the plugin's own LPT would transform what stays in real numbers by its own rules: wrong numbers",
        phase=Phase.BODIES, lpt_on=True,
    ),
    _rule(
        hiding.hide_zero_points, "Subtract", _CPU,
        "the plugin's own LPT would fuse the zero point into the FakeQuantize, and the layer would run in float",
        phase=Phase.MODEL, lpt_on=True,
    ),
    _rule(
        hiding.hide_padding, "Pad", _CPU,
        "the plugin's own LPT would round the padding value to an integer: wrong numbers",
        phase=Phase.BODIES, lpt_on=True,
    ),
    _rule(
        hiding.hide_scales, "Add Multiply MVN NormalizeL2 Subtract", _CPU,
        "the plugin's own LPT would move a scale after a sum of integers, which saturates, or a normalization with its eps: wrong numbers; "
        "so would it let a scale read floats of 8 bits, which throws",
        phase=Phase.BODIES, lpt_on=True,
    ),
    _rule(
        hiding.hide_shifts, "Add FakeQuantize Subtract", _CPU,
        "the plugin's own LPT would turn scale and shift into a form that is read wrongly at dynamic sizes of one element: wrong numbers",
        phase=Phase.BODIES, lpt_on=True,
    ),
    _rule(
        sharing.join_quantizations, "FakeQuantize", _CPU,
        "equal quantizations of a tensor, each with a hidden bound, would be separate layers",
        phase=Phase.BODIES, saved_only=True,
    ),
    _rule(
        sharing.share_constants, "Constant", _CPU,
        "each extra node takes time whenever the saved model is loaded", phase=Phase.BODIES, saved_only=True,
    ),
    _rule(
        hiding.hide_recurrent_weights, RECURRENT, _CPU,
        "the integer weights of a recurrent layer would be folded to floats",
        phase=Phase.BODIES, saved_only=True, lpt_on=True,
    ),
    _rule(
        hiding.hide_from_lpt, "FakeQuantize", _CPU,
        "the plugin's own LPT would transform the saved model a second time",
        phase=Phase.BODIES, saved_only=True, lpt_on=False,
    ),
    _rule(
        hiding.hide_from_stripping, "FakeQuantize", _CPU,
        "a FakeQuantize with 65536 levels would be dropped, and with it what it clips: wrong numbers", phase=Phase.BODIES,
    ),
    _rule(
        folding.keep_computed, "Add Divide FloorMod Mod Multiply Power SquaredDifference Subtract", _CPU,
        "what is computed from constants would be overwritten: wrong numbers from the second inference on",
        phase=Phase.BODIES,
    ),
)  # fmt: skip
