"""What quantizers other than NNCF write, and parts of networks that `tools.fuzz.operations` does not have.

Builders as there: a generator of random numbers and the sources give a node, or None where it does not apply.
"""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Node, Output, Type, opset1
from tools.fuzz.operations import (
    NUMPY_TYPES,
    Builder,
    Random,
    branches,
    cache,
    chance,
    create,
    f32,
    i64,
    loop,
    pick,
    rolling_state,
    sizes,
    weights,
)

_STORED = {"u4": (0, 16), "i4": (-8, 8), "i8": (-62, 63), "u8": (66, 190)}  # what weights hold, the end excluded


def quantize_clip(random: Random, data: Output, values: np.ndarray) -> Node:
    """As Brevitas exports it: integers of 8 bits that a Clip narrows to fewer, and a scale of the whole tensor."""
    kind, bits = pick(random, "u8", "i8"), int(pick(random, 8, 8, 7, 4))
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind == "i8" else (0, 2**bits - 1)
    if kind == "i8" and chance(random, 0.7):
        low += 1  # narrow
    zero_point = 0 if kind == "i8" or float(values.min(initial=0)) >= 0 else 2 ** (bits - 1)
    top = max(float(np.abs(values).max(initial=0)), 1e-2) * random.uniform(0.7, 1.1)
    scale = np.float32(top / (high - zero_point))
    first = -128 if kind == "i8" else 0
    ends = [f32((end - zero_point) * scale) for end in (first, first + 255)]
    stored = opset1.fake_quantize(data, *ends, f32(first), f32(first + 255), 256)
    stored = opset1.convert(stored, kind)
    if bits < 8 or low != first:
        bounds = [opset1.constant(np.array(bound, NUMPY_TYPES[kind])) for bound in (low, high)]
        stored = opset1.minimum(opset1.maximum(stored, bounds[0]), bounds[1])
    node = opset1.convert(stored, "f32")
    if zero_point:
        node = opset1.subtract(node, opset1.convert(opset1.constant(np.array(zero_point, NUMPY_TYPES[kind])), "f32"))
    return opset1.multiply(node, f32(scale))


def product_of_transposed_weights(random: Random, data: Output) -> Node | None:
    """Stored integers that a Transpose turns, before their scale or after it."""
    inner, outer = sizes(data)[-1], int(pick(random, 4, 8, 12))
    stored = opset1.constant((2 * random.integers(-31, 32, (outer, inner))).astype(np.int8))
    scale, order = random.uniform(0.005, 0.02, (outer, 1)), i64([1, 0])
    if chance(random, 0.3):
        clipped = opset1.maximum(stored, opset1.constant(np.array(-127, np.int8)))
        stored = opset1.minimum(clipped, opset1.constant(np.array(127, np.int8)))
    if chance(random, 0.5):
        return opset1.matmul(
            data, opset1.transpose(opset1.multiply(opset1.convert(stored, "f32"), f32(scale)), order), False, False
        )
    turned = opset1.convert(opset1.transpose(stored, order), "f32")
    return opset1.matmul(data, opset1.multiply(turned, f32(scale.T)), False, False)


def product_of_blocks(random: Random, data: Output) -> Node | None:
    """Weights of 4 or 8 bits with a scale, and at times a zero point, for each block of inputs."""
    inner, outer = sizes(data)[-1], int(pick(random, 4, 8))
    sized = [size for size in (2, 4, inner) if inner % size == 0]
    shape = [outer, inner // (block := int(pick(random, *sized))), block]
    kind = pick(random, "u4", "i4", "i8", "u8")
    low, high = _STORED[kind]
    stored = opset1.constant(random.integers(low, high, shape), getattr(Type, kind))
    node = opset1.convert(stored, "f32")
    if kind[0] == "u" or chance(random, 0.2):
        middle = (low + high) // 2
        point = opset1.constant(random.integers(middle - 2, middle + 3, [*shape[:2], 1]), getattr(Type, kind))
        node = opset1.subtract(node, opset1.convert(point, "f32"))
    node = opset1.multiply(node, f32(random.uniform(0.5, 1.5, [*shape[:2], 1]) / (high - low)))
    return opset1.matmul(data, opset1.reshape(node, i64([outer, inner]), False), False, True)


def product_of_blocked_rows(random: Random, data: Output) -> Node | None:
    """As OpenVINO reads a DequantizeLinear of opset 21: blocks along the axis that is summed over, which comes first."""
    inner, outer = sizes(data)[-1], int(pick(random, 4, 8))
    sized = [size for size in (2, 4, inner) if inner % size == 0]
    if inner < 2 or not sized:
        return None
    block = int(pick(random, *sized))
    kind = pick(random, "u4", "i4", "i8", "u8")
    low, high = _STORED[kind]
    stored = opset1.constant(random.integers(low, high, (inner, outer)), getattr(Type, kind))
    target = opset1.shape_of(stored)
    node = opset1.convert(opset1.reshape(stored, i64([inner // block, block, outer]), False), "f32")
    rows = [inner // block, outer]
    if kind[0] == "u" or chance(random, 0.3):
        middle = (low + high) // 2
        point = opset1.constant(random.integers(middle - 2, middle + 3, rows), getattr(Type, kind))
        node = opset1.subtract(node, opset1.convert(opset1.unsqueeze(point, i64([1])), "f32"))
    node = opset1.multiply(node, opset1.unsqueeze(f32(random.uniform(0.5, 1.5, rows) / (high - low)), i64([1])))
    return opset1.matmul(data, opset1.reshape(node, target, False), False, False)


def through_float_8(random: Random, data: Output) -> Node | None:
    """Quantized to 8 bits of floating point: in one operation, or by Converts and a scale."""
    if data.get_element_type() != Type.f32:
        return None
    kind = pick(random, "f8e4m3", "f8e5m2")
    if chance(random, 0.5):
        return create("opset13", "FakeConvert", [data, f32(random.uniform(0.5, 8))], destination_type=kind)
    scale = f32(random.uniform(0.01, 0.5))
    stored = opset1.convert(opset1.clamp(opset1.divide(data, scale), -440.0, 440.0), kind)
    return opset1.multiply(opset1.convert(stored, "f32"), scale)


# Normalization


def group_normalization(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    groups = [count for count in (1, 2, 4) if len(shape) > 2 and shape[1] % count == 0]
    if not groups:
        return None
    scale, bias = f32(random.uniform(0.5, 1.5, shape[1])), f32(random.uniform(-0.5, 0.5, shape[1]))
    return create(
        "opset12", "GroupNormalization", [data, scale, bias], num_groups=int(pick(random, *groups)), epsilon=1e-3
    )


def layer_normalization(random: Random, data: Output) -> Node | None:
    """Written out, as exporters do; over the last axis, or over the channels of an image."""
    shape = sizes(data)
    axis = 1 if len(shape) > 2 and chance(random, 0.3) else len(shape) - 1
    if shape[axis] < 2:
        return None
    aligned = [1] * axis + [shape[axis]] + [1] * (len(shape) - axis - 1)
    centred = opset1.subtract(data, opset1.reduce_mean(data, i64([axis]), True))
    variance = opset1.reduce_mean(opset1.power(centred, f32(2)), i64([axis]), True)
    deviation = opset1.sqrt(opset1.add(variance, f32(1e-3)))
    node = opset1.multiply(opset1.divide(centred, deviation), f32(random.uniform(0.5, 1.5, aligned)))
    return opset1.add(node, f32(random.uniform(-0.5, 0.5, aligned)))


def root_mean_square(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    mean = opset1.reduce_mean(opset1.power(data, f32(2)), i64([len(shape) - 1]), True)
    root = opset1.sqrt(opset1.add(mean, f32(1e-3)))
    node = opset1.divide(data, root) if chance(random, 0.5) else opset1.multiply(data, opset1.divide(f32(1), root))
    return opset1.multiply(f32(random.uniform(0.5, 1.5, shape[-1])), node)


def rotary(random: Random, data: Output) -> Node | None:
    """Positions as rotations of halves of the last axis."""
    shape = sizes(data)
    if len(shape) not in (3, 4) or shape[-1] % 2:
        return None
    half = shape[-1] // 2
    first, second = opset1.split(data, i64(len(shape) - 1), 2).outputs()
    turned = opset1.concat([opset1.negative(second).output(0), first], -1)
    angles = np.arange(shape[-2])[:, None] * np.geomspace(1, 0.1, half)[None]
    angles = np.concatenate([angles, angles], -1)
    return opset1.add(opset1.multiply(data, f32(np.cos(angles))), opset1.multiply(turned, f32(np.sin(angles))))


# Sampling and look-up


def grid_sample(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4:
        return None
    grid = f32(random.uniform(-1.1, 1.1, (shape[0], 3, 4, 2)))
    return create(
        "opset9", "GridSample", [data, grid], align_corners=chance(random, 0.5),
        mode=pick(random, "bilinear", "nearest"), padding_mode=pick(random, "zeros", "border"),
    )  # fmt: skip


def deformable_convolution(random: Random, data: Output) -> Node | None:
    shape = sizes(data)
    if len(shape) != 4 or min(shape[2:]) < 3:
        return None
    offsets = f32(random.uniform(-0.4, 0.4, (shape[0], 18, shape[2] - 2, shape[3] - 2)))
    filters = weights(random, [int(pick(random, 4, 8)), shape[1], 3, 3], [0])
    return create(
        "opset8", "DeformableConvolution", [data, offsets, filters], strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
        dilations=[1, 1], deformable_group=1, group=1, bilinear_interpolation_pad=False,
    )  # fmt: skip


def embedding(random: Random, data: Output) -> Node | None:
    """Rows of a quantized table that the data chooses, alone or summed in bags."""
    shape = sizes(data)
    table = weights(random, [8, int(pick(random, 4, 8))], [0])
    chosen = opset1.convert(opset1.clamp(opset1.multiply(opset1.abs(data), f32(2)), 0.0, 7.0), "i32")
    if len(shape) == 2 and chance(random, 0.5):
        return create("opset3", "EmbeddingBagPackedSum", [table, chosen])
    return create("opset8", "Gather", [table, chosen, i64(0)], batch_dims=0) if len(shape) < 4 else None


def log_probabilities(random: Random, data: Output) -> Node | None:
    """A head for CTC: classes last, steps first."""
    shape = sizes(data)
    if len(shape) != 3:
        return None
    return create("opset5", "LogSoftmax", [opset1.transpose(data, i64([2, 0, 1]))], axis=2)


# Several outputs, and bodies in bodies


def parts_alike(random: Random, data: Output) -> Node | None:
    """Outputs of one operation that are quantized alike, and meet again or are read by a layer each."""
    shape = sizes(data)
    axis = len(shape) - 1 if chance(random, 0.5) else 1
    if len(shape) < 2 or shape[axis] % 2 or shape[axis] < 4:
        return None
    half = shape[axis] // 2
    kind = pick(random, "Split", "VariadicSplit", "TopK")
    if kind == "Split":
        parts = opset1.split(data, i64(axis), 2).outputs()
    elif kind == "VariadicSplit":
        parts = opset1.variadic_split(data, i64(axis), i64([half, -1])).outputs()
    else:
        found = create(
            "opset11", "TopK", [data, i64(half)], axis=axis, mode="max", sort="value", index_element_type="i32"
        )
        parts = [found.output(0), opset1.multiply(opset1.convert(found.output(1), "f32"), f32(0.1)).output(0)]
    low, high = pick(random, (0.0, 2.55), (-1.28, 1.27), (-1.0, 2.0))
    parts = [opset1.fake_quantize(part, f32(low), f32(high), f32(low), f32(high), 256) for part in parts]
    if chance(random, 0.4):
        size = parts[0].get_output_shape(0)[-1]
        parts = [opset1.matmul(part, weights(random, [size, size], [0]), False, True) for part in parts]
    if chance(random, 0.5):
        return opset1.concat(parts[::-1], axis)
    return pick(random, opset1.add, opset1.multiply)(*parts)


def branches_around_loop(random: Random, data: Output) -> Node | None:
    return branches(random, data, lambda random, inner: loop(random, inner.output(0)))


def branches_around_branches(random: Random, data: Output) -> Node | None:
    return branches(random, data, lambda random, inner: branches(random, inner.output(0)))


FORMS: dict[str, tuple[Builder, int, float]] = {
    "QuantizeClip": (quantize_clip, 1, 8),
    "MatMulOfTransposed": (product_of_transposed_weights, 1, 8),
    "MatMulOfBlocks": (product_of_blocks, 1, 8),
    "MatMulOfBlockedRows": (product_of_blocked_rows, 1, 8),
    "PartsAlike": (parts_alike, 1, 8),
    "IfAroundLoop": (branches_around_loop, 1, 3),
    "IfAroundIf": (branches_around_branches, 1, 2),
    "ThroughFloat8": (through_float_8, 1, 2),
    "GroupNormalization": (group_normalization, 1, 6),
    "LayerNormalization": (layer_normalization, 1, 6),
    "RootMeanSquare": (root_mean_square, 1, 6),
    "Rotary": (rotary, 1, 6),
    "GridSample": (grid_sample, 1, 5),
    "DeformableConvolution": (deformable_convolution, 1, 5),
    "Embedding": (embedding, 1, 3),
    "LogProbabilities": (log_probabilities, 1, 3),
    "State": (rolling_state, 1, 3),
    "Cache": (cache, 1, 3),
}
FORM_MOTIFS: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = (
    (("MatMul", (0,)), ("MatMul", (0,)), ("Cache", (2,)), ("MatMulOfTwo", (1, 3)), ("Softmax", (4,))),
    (("MatMul", (0,)), ("MatMul", (0,)), ("Cache", (2,)), ("Attention", (1, 3)), ("MatMul", (4,))),
    (("State", (0,)), ("Convolution", (1,)), ("AddConstant", (2,)), ("Relu", (3,))),
    (("LayerNormalization", (0,)), ("MatMul", (1,)), ("Gelu", (2,)), ("MatMul", (3,)), ("Add", (0, 4))),
)
