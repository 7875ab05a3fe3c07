"""What the front ends of ONNX, PyTorch and TensorFlow give, and neither `tools.fuzz.operations` nor `tools.fuzz.forms` has.

Builders as there: a generator of random numbers and the sources give a node, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.graph.constants import constant
from ovlpt.openvino_api import Node, Output, opset1
from tools.fuzz.operations import (
    NUMPY_TYPES,
    Builder,
    Random,
    chance,
    create,
    f32,
    i64,
    per_channel,
    pick,
    recurrent,
    sizes,
    weights,
)

_ACTIVATIONS: dict[str, tuple[str, dict[str, object]]] = {
    "Elu": ("opset1", {"alpha": 1.0}), "Erf": ("opset1", {}), "Exp": ("opset1", {}), "HSigmoid": ("opset5", {}),
    "Mish": ("opset4", {}), "Negative": ("opset1", {}), "SoftPlus": ("opset4", {}), "SoftSign": ("opset9", {}), "Sin": ("opset1", {}),
    "Floor": ("opset1", {}), "Ceiling": ("opset1", {}), "Sign": ("opset1", {}), "Cos": ("opset1", {}), "Atan": ("opset1", {}),
    "Round": ("opset5", {"mode": "half_to_even"}), "Gelu": ("opset7", {"approximation_mode": "TANH"}),
}  # fmt: skip


def activation(random: Random, data: Output) -> Node:
    kind = pick(random, *_ACTIVATIONS)
    opset, attributes = _ACTIVATIONS[kind]
    if kind == "Exp":
        data = opset1.clamp(data, -4.0, 4.0).output(0)
    return create(opset, kind, [data], **attributes)


def activation_with_numbers(random: Random, data: Output) -> Node:
    """HardSigmoid and Selu take theirs from constants; a root, a logarithm or a quotient is of what is not near zero."""
    kind = pick(random, "HardSigmoid", "Selu", "Sqrt", "Log", "Power")
    if kind == "HardSigmoid":
        return create("opset1", kind, [data, f32(0.2), f32(0.5)])
    if kind == "Selu":
        return create("opset1", kind, [data, f32(1.6733), f32(1.0507)])
    positive = opset1.add(opset1.abs(data), f32(0.5))
    return opset1.power(positive, f32(0.5)) if kind == "Power" else create("opset1", kind, [positive])


def spelled_gelu(random: Random, data: Output) -> Node:
    if chance(random, 0.5):
        inner = opset1.erf(opset1.divide(data, f32(np.sqrt(2))))
    else:
        cube = opset1.multiply(opset1.power(data, f32(3)), f32(0.044715))
        inner = opset1.tanh(opset1.multiply(opset1.add(data, cube), f32(0.79788)))
    return opset1.multiply(opset1.multiply(data, opset1.add(inner, f32(1))), f32(0.5))


def same_convolution(random: Random, data: Output) -> Node | None:
    """As TensorFlow pads, or not at all."""
    shape = sizes(data)
    if len(shape) < 3:
        return None
    kernel = [min(int(pick(random, 1, 2, 3)), size) for size in shape[2:]]
    strides, none = [int(pick(random, 1, 2))] * len(kernel), [0] * len(kernel)
    filters = weights(random, [int(pick(random, 4, 8)), shape[1], *kernel], [0])
    auto_pad = pick(random, "same_upper", "same_upper", "same_lower", "valid")
    return create("opset1", "Convolution", [data, filters], strides=strides, pads_begin=none, pads_end=none,
                  dilations=[1] * len(kernel), auto_pad=auto_pad)  # fmt: skip


def pool_of_other_sizes(random: Random, data: Output) -> Node | None:
    """As TensorFlow pads, or with sizes that are rounded up."""
    shape = sizes(data)
    if len(shape) < 3 or min(shape[2:]) < 2:
        return None
    none = [0] * (len(shape) - 2)
    form = pick(random, {"auto_pad": "same_upper"}, {"rounding_type": "ceil"}, {"auto_pad": "valid"})
    window = {"kernel": [2 for _ in none], "strides": [2 for _ in none], "pads_begin": none, "pads_end": none}
    if chance(random, 0.5):
        return create("opset1", "MaxPool", [data], **window, **form)
    return create("opset1", "AvgPool", [data], **window, **form, **{"exclude-pad": chance(random, 0.5)})


def adaptive_pool(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 3:
        return None
    target = i64([int(pick(random, 1, 2, 3))] * (len(shape) - 2))
    if chance(random, 0.7):
        return create("opset8", "AdaptiveAvgPool", [data, target])
    return create("opset8", "AdaptiveMaxPool", [data, target], index_element_type="i32")


def batch_norm(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    spread = [random.uniform(low, high, shape[1]) for low, high in ((0.5, 1.5), (-0.5, 0.5), (-0.5, 0.5), (0.3, 1.5))]
    return create("opset5", "BatchNormInference", [data, *map(f32, spread)], epsilon=1e-3)


def response_norm(random: Random, data: Output) -> Node | None:
    return opset1.lrn(data, i64([1]), 0.1, 0.75, 1.0, 3) if len(sizes(data)) == 4 else None


def add_of_fewer_axes(random: Random, data: Output) -> Node | None:
    """A bias of shape [C, 1, 1], at times of what is computed."""
    shape = sizes(data)
    if len(shape) < 3:
        return None
    values = f32(random.uniform(-1, 1, [shape[1], *[1] * (len(shape) - 2)]))
    return pick(random, opset1.add, opset1.multiply)(*pick(random, (data, values), (values, data)))


def where(random: Random, data: Output) -> Node:
    """Of a condition that follows from the data, and a constant."""
    condition = pick(random, opset1.less, opset1.greater_equal)(data, f32(random.uniform(-0.5, 0.5)))
    other = pick(random, f32(0), f32(-100), f32(0.5))
    return opset1.select(condition, data, other)


def divide(random: Random, one: Output, other: Output) -> Node:
    return opset1.divide(one, opset1.add(opset1.abs(other), f32(0.5)))


def concat_with_constant(random: Random, data: Output) -> Node | None:
    """A token before others, or three tensors."""
    shape = sizes(data)
    if len(shape) < 2:
        return None
    axis = len(shape) - 2 if len(shape) == 3 else 1
    shape[axis] = 1
    token = f32(random.uniform(-1, 1, shape)).output(0)
    joined = pick(random, [token, data], [data, token], [data, token, opset1.relu(data).output(0)])
    return opset1.concat(joined, axis)


def slice_otherwise(random: Random, data: Output) -> Node | None:
    """Backwards, after an ellipsis, or with a new axis."""
    shape = sizes(data)
    if len(shape) < 3 or shape[-1] < 3:
        return None
    form = pick(random, "backwards", "ellipsis", "new axis")
    if form == "backwards":
        return create("opset8", "Slice", [data, i64([-1]), i64([-1000]), i64([-1]), i64([len(shape) - 1])])
    if form == "ellipsis":
        return opset1.strided_slice(
            data, i64([0, 1]), i64([0, 3]), i64([1, 1]), [1, 0], [1, 0], ellipsis_mask=[1, 0], new_axis_mask=[0, 0]
        )
    if len(shape) > 3:
        return None
    return opset1.strided_slice(data, i64([0, 0]), i64([0, 0]), i64([1, 1]), [1, 1], [1, 1], new_axis_mask=[0, 1])


def scattered(random: Random, data: Output) -> Node | None:
    """Some of the data in place of another part of it."""
    shape = sizes(data)
    if len(shape) < 2 or shape[1] < 2:
        return None
    if chance(random, 0.5):
        rows = opset1.gather(data, i64([0]), i64(1))
        return create("opset3", "ScatterUpdate", [data, i64([shape[1] - 1]), rows.output(0), i64(1)])
    indices = random.integers(0, shape[1], shape)
    return create("opset6", "GatherElements", [data, i64(indices)], axis=1)


def in_order(random: Random, data: Output) -> Node | None:
    """The largest values, sums over what comes before, or the data reversed."""
    shape = sizes(data)
    if len(shape) < 2 or shape[-1] < 2:
        return None
    form = pick(random, "TopK", "CumSum", "ReverseSequence")
    if form == "TopK":
        return create("opset11", "TopK", [data, i64(2)], axis=len(shape) - 1, mode="max", sort="value",
                      index_element_type="i32")  # fmt: skip
    if form == "CumSum":
        return create("opset3", "CumSum", [data, i64(len(shape) - 1)], exclusive=False, reverse=False)
    lengths = i64([shape[1]] * shape[0])
    return create("opset1", "ReverseSequence", [data, lengths], batch_axis=0, seq_axis=1)


def space_to_depth(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4 or shape[2] % 2 or shape[3] % 2:
        return None
    return create("opset1", "SpaceToDepth", [data], mode=pick(random, "blocks_first", "depth_first"), block_size=2)


def norm_of(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    kind = pick(random, "ReduceL2", "ReduceL1")
    norm = create("opset4", kind, [data, i64([len(shape) - 1])], keep_dims=True)
    return opset1.divide(data, opset1.add(norm, f32(0.1))) if chance(random, 0.5) else norm


def einsum(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    equations = {2: "bi,oi->bo", 3: "bti,oi->bto", 4: "bchi,oi->bcho"}
    if len(shape) not in equations:
        return None
    return create("opset7", "Einsum", [data, weights(random, [8, shape[-1]], [0])], equation=equations[len(shape)])


def scaled(operation: Callable[..., Node]) -> Builder:
    """By a vector of fewer axes, as what is left of a normalization."""

    def build(random: Random, data: Output) -> Node | None:
        shape = sizes(data)
        return operation(data, f32(per_channel(random, 2, shape[-1], 0.5, 1.5, 0.1))) if len(shape) > 1 else None

    return build


def swish(random: Random, data: Output) -> Node:
    return create("opset4", "Swish", [data, f32(random.uniform(0.5, 2))])


def softmax_elsewhere(random: Random, data: Output) -> Node | None:
    """Over the channels, or an axis that is counted from the end."""
    rank = len(sizes(data))
    if rank < 3:
        return None
    return create("opset8", "Softmax", [data], axis=int(pick(random, 1, -2, -1)))


def heads(random: Random, data: Output) -> Node | None:
    """The last axis in parts, which come before the axis above it, or back."""
    shape = sizes(data)
    if len(shape) == 3 and shape[-1] % 2 == 0:
        parts = opset1.reshape(data, i64([0, 0, 2, shape[-1] // 2]), True)
        return opset1.transpose(parts, i64(pick(random, [0, 2, 1, 3], [0, 2, 3, 1])))
    if len(shape) == 4:
        return opset1.reshape(opset1.transpose(data, i64([0, 2, 1, 3])), i64([0, 0, shape[1] * shape[3]]), True)
    return None


def transposed_convolution(random: Random, data: Output) -> Node | None:
    """With sizes as TensorFlow has them, or one row more, as PyTorch does."""
    shape = sizes(data)
    if len(shape) not in (3, 4):
        return None
    spatial = len(shape) - 2
    filters, none = weights(random, [shape[1], int(pick(random, 4, 8)), *[3] * spatial], [1]), [0] * spatial
    form = pick(random, {"auto_pad": "same_upper"}, {"output_padding": [1] * spatial}, {"dilations": [2] * spatial})
    attributes = {"strides": [2] * spatial, "pads_begin": none, "pads_end": none, "dilations": [1] * spatial}
    return create("opset1", "ConvolutionBackpropData", [data, filters], **attributes | {"auto_pad": "explicit"} | form)


def interpolate_by_scales(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) not in (3, 4):
        return None
    axes = list(range(2, len(shape)))
    scale = float(pick(random, 2.0, 1.5, 0.5))
    return create(
        "opset4", "Interpolate", [data, i64([max(int(shape[axis] * scale), 1) for axis in axes]), f32([scale] * len(axes)), i64(axes)],
        mode=pick(random, "nearest", "linear_onnx"), shape_calculation_mode="scales", nearest_mode=pick(random, "round_prefer_floor", "simple"),
        coordinate_transformation_mode=pick(random, "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn", "asymmetric"),
        pads_begin=[0] * len(shape), pads_end=[0] * len(shape),
    )  # fmt: skip


def cropped(random: Random, data: Output) -> Node | None:
    """By padding that is less than nothing, at times beside more on the other side."""
    shape = sizes(data)
    if len(shape) < 3 or shape[-1] < 3:
        return None
    begin, end = np.zeros((2, len(shape)), np.int64)
    begin[-1], end[-1] = pick(random, (-1, 0), (0, -1), (-1, 1))
    return create("opset12", "Pad", [data, i64(begin), i64(end), f32(0)], pad_mode="constant")


def parts(random: Random, data: Output) -> Node | None:
    """More than two, as of queries, keys and values, or of sizes of which one is left open."""
    shape = sizes(data)
    counts = [count for count in (3, 4) if shape[-1] % count == 0]
    if len(shape) < 2 or shape[-1] < 3:
        return None
    if counts and chance(random, 0.6):
        return opset1.split(data, i64(-1), int(pick(random, *counts)))
    return opset1.variadic_split(data, i64(-1), i64([1, -1]))


def scattered_elements(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) < 2:
        return None
    updated = [*shape[:-1], 1]
    indices, values = i64(random.integers(0, shape[-1], updated)), f32(random.uniform(-1, 1, updated))
    return create("opset3", "ScatterElementsUpdate", [data, indices, values, i64(-1)])


def gathered_cells(random: Random, data: Output) -> Node | None:
    """By pairs of indices, or by one that counts from the end."""
    shape = sizes(data)
    if len(shape) < 3:
        return None
    if chance(random, 0.5):
        return create("opset8", "Gather", [data, i64([-1, 0]), i64(-2)], batch_dims=0)
    pairs = np.stack([random.integers(0, size, 3) for size in shape[:2]], -1)
    return create("opset8", "GatherND", [data, i64(pairs)], batch_dims=0)


def patches(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4 or min(shape[2:]) < 2:
        return None
    if shape[2] % 2 == 0 and shape[3] % 2 == 0 and chance(random, 0.5):
        return create("opset2", "ReorgYolo", [data], stride=[2])
    return create("opset3", "ExtractImagePatches", [data], sizes=[2, 2], strides=[1, 1], rates=[1, 1], auto_pad="valid")


def masked(random: Random, data: Output) -> Node:
    """What lies between two values, else the rest of a division."""
    inside = create("opset1", "LogicalAnd", [opset1.greater(data, f32(-0.5)), opset1.less_equal(data, f32(0.5))])
    return opset1.select(inside, data, create("opset1", "FloorMod", [data, f32(0.7)]))


def quantize_otherwise(random: Random, data: Output, values: np.ndarray) -> Node:
    """By channel, of a narrow range, with a scale that is stored in 16 bits, or a zero point in 32."""
    kind, rank = pick(random, "u8", "i8"), values.ndim
    fine = rank > 1 and chance(random, 0.5)
    axes = tuple(axis for axis in range(rank) if axis != 1) if fine else None
    least, most = (0, 255) if kind == "u8" else (-127 if chance(random, 0.5) else -128, 127)
    top = np.maximum(np.abs(values).max(axes, keepdims=fine), 1e-2) * random.uniform(0.7, 1.1)
    point = random.integers(100, 150, top.shape) if kind == "u8" else random.integers(-10, 11, top.shape)
    stored_as = pick(random, "f32", "f16", "bf16")
    scale = np.asarray(top / 127, np.float32)
    if stored_as != "f32":  # what it holds then
        bits = scale.view(np.uint32) & np.uint32(0xFFFF0000)
        scale = bits.view(np.float32) if stored_as == "bf16" else scale.astype(np.float16).astype(np.float32)
    scale = np.maximum(scale, np.float32(2.0**-12))
    ends = [f32((end - point) * scale) for end in (least, most)]
    node = opset1.fake_quantize(data, *ends, f32(least), f32(most), most - least + 1)
    node = opset1.convert(opset1.convert(node, kind), "f32")
    if point.any():
        as_integers = opset1.constant(point.astype(pick(random, NUMPY_TYPES[kind], np.int32)))
        node = opset1.subtract(node, opset1.convert(as_integers, "f32"))
    stored = constant(scale, stored_as)
    return opset1.multiply(node, stored if stored_as == "f32" else opset1.convert(stored, "f32"))


def layer_of_other_weights(random: Random, data: Output) -> Node | None:
    """Of u8 with zero points by channel, or of i8 around some, which are scaled in f16, as weights are compressed."""
    shape, outputs = sizes(data), int(pick(random, 4, 8))
    if len(shape) < 2:
        return None
    dims = (
        [outputs, shape[1], *[1] * (len(shape) - 2)] if len(shape) > 2 and chance(random, 0.6) else [outputs, shape[-1]]
    )
    aligned, kind = [outputs, *[1] * (len(dims) - 1)], pick(random, "u8", "i8")
    middle = 128 if kind == "u8" else 0
    point = middle + 2 * random.integers(-5, 6, aligned)
    stored = opset1.constant((point + 2 * random.integers(-26, 27, dims)).astype(NUMPY_TYPES[kind]))
    real = pick(random, "f32", "f16")
    node = opset1.subtract(
        opset1.convert(stored, real), opset1.convert(opset1.constant(point.astype(NUMPY_TYPES[kind])), real)
    )
    scale = random.uniform(0.5, 1.5, aligned) / 100
    node = opset1.multiply(node, opset1.constant(scale.astype(np.float16 if real == "f16" else np.float32)))
    if real == "f16":
        node = opset1.convert(node, "f32")
    if len(dims) == 2:
        return opset1.matmul(data, node, False, True)
    ones, none = [1] * (len(dims) - 2), [0] * (len(dims) - 2)
    return opset1.convolution(data, node, ones, none, none, ones)


EXPORTED: dict[str, tuple[Builder, int, float]] = {
    "Activation": (activation, 1, 8),
    "ActivationWithNumbers": (activation_with_numbers, 1, 4),
    "SpelledGelu": (spelled_gelu, 1, 4),
    "SameConvolution": (same_convolution, 1, 8),
    "PoolOfOtherSizes": (pool_of_other_sizes, 1, 6),
    "AdaptivePool": (adaptive_pool, 1, 4),
    "BatchNorm": (batch_norm, 1, 6),
    "ResponseNorm": (response_norm, 1, 2),
    "AddOfFewerAxes": (add_of_fewer_axes, 1, 6),
    "Where": (where, 1, 5),
    "Divide": (divide, 2, 4),
    "SquaredDifference": (lambda random, one, other: create("opset1", "SquaredDifference", [one, other]), 2, 3),
    "ConcatWithConstant": (concat_with_constant, 1, 6),
    "SliceOtherwise": (slice_otherwise, 1, 5),
    "Scattered": (scattered, 1, 4),
    "InOrder": (in_order, 1, 4),
    "SpaceToDepth": (space_to_depth, 1, 4),
    "NormOf": (norm_of, 1, 4),
    "Einsum": (einsum, 1, 5),
    "ScaledLast": (scaled(opset1.multiply), 1, 4),
    "SwishOf": (swish, 1, 2),
    "SoftmaxElsewhere": (softmax_elsewhere, 1, 3),
    "Heads": (heads, 1, 4),
    "TransposedConvolution": (transposed_convolution, 1, 4),
    "InterpolateByScales": (interpolate_by_scales, 1, 4),
    "Cropped": (cropped, 1, 3),
    "Parts": (parts, 1, 4),
    "ScatteredElements": (scattered_elements, 1, 2),
    "GatheredCells": (gathered_cells, 1, 3),
    "Patches": (patches, 1, 3),
    "Masked": (masked, 1, 2),
    "RNN": (recurrent("RNNSequence", 1), 1, 2),
    "QuantizeOtherwise": (quantize_otherwise, 1, 8),
    "LayerOfOtherWeights": (layer_of_other_weights, 1, 8),
}
