"""What the front ends of ONNX, PyTorch and TensorFlow give, and neither `tools.fuzz.operations` nor `tools.fuzz.forms` has.

Builders as there: a generator of random numbers and the sources give a node, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovlpt.openvino_api import Node, Output, opset1
from tools.fuzz.operations import Builder, Random, chance, create, f32, i64, per_channel, pick, sizes, weights

_ACTIVATIONS: dict[str, tuple[str, dict[str, object]]] = {
    "Elu": ("opset1", {"alpha": 1.0}), "Erf": ("opset1", {}), "Exp": ("opset1", {}), "HSigmoid": ("opset5", {}),
    "Mish": ("opset4", {}), "Negative": ("opset1", {}), "SoftPlus": ("opset4", {}), "SoftSign": ("opset9", {}), "Sin": ("opset1", {}),
    "Floor": ("opset1", {}),
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
    constant = f32(random.uniform(-1, 1, shape)).output(0)
    parts = pick(random, [constant, data], [data, constant], [data, constant, opset1.relu(data).output(0)])
    return opset1.concat(parts, axis)


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
}
