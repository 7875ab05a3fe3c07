"""The exact integer accumulator of a weighted node."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovlpt.openvino_api import Node
from ovlpt.reference import convolution_accumulator, matrix_accumulator, transposed_accumulator
from ovlpt.reference.accumulation import spread_out
from ovlpt.reference.saturation import convolution_saturation_loss, saturation_loss


def accumulator(node: Node, data: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int64, of the shape of the node's output.

    ``data`` and ``weights`` hold integers, zero points subtracted, of any numeric type and in OpenVINO's
    layouts: weights [O, I, ...], of a GroupConvolution [G, O / G, I / G, ...]; of transposed convolutions
    [I, O, ...] and [G, I / G, O / G, ...].
    """
    data, weights = data.astype(np.int32), weights.astype(np.int32)
    if node.get_type_name() == "MatMul":
        rows, columns = _matrices(node, data, weights)
        largest = int(np.abs(rows).max(initial=0))
        return _output(node, matrix_accumulator(columns, rows.swapaxes(-1, -2), largest))
    weights, arguments = _convolution(node, data.shape, weights)
    return (transposed_accumulator if _is_transposed(node) else convolution_accumulator)(data, weights, **arguments)


def saturation(node: Node, stored: np.ndarray, zero_point: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What to add to the accumulator on a CPU that sums pairs of products in 16 bits (`saturation_loss`).

    ``stored``: u8 or i8 as the node's data is stored, ``zero_point`` what was subtracted of each number, one for
    a channel at most. i8 data is moved by 128 into u8 before it is multiplied.
    """
    moved = 128 if stored.dtype == np.int8 else 0
    stored, weights = stored.astype(np.int32) + moved, weights.astype(np.int32)
    if node.get_type_name() == "MatMul":
        rows, columns = _matrices(node, stored, weights)
        batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
        rows, columns = (np.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (rows, columns))
        loss = np.empty((*batch, columns.shape[-2], rows.shape[-2]), np.int64)
        for at in np.ndindex(*batch):
            loss[at] = saturation_loss(columns[at], rows[at].T)
        return _output(node, loss)
    weights, arguments = _convolution(node, stored.shape, weights)
    if _is_transposed(node):
        groups = arguments["groups"]
        if groups > 1 and (stored.shape[1] % 8 or groups * weights.shape[1] % 8):
            return np.zeros(tuple(node.get_output_shape(0)), np.int64)  # AVX2 has a kernel in f32 for them
        stored, weights, arguments = spread_out(stored, weights, **arguments)
        return convolution_saturation_loss(stored, weights, transposed=True, **arguments)
    of_channels = (slice(1), slice(None), *(slice(1) for _ in stored.shape[2:]))
    return convolution_saturation_loss(stored, weights, zero_point[of_channels] + moved, **arguments)


def _convolution(node: Node, data: tuple[int, ...], weights: np.ndarray) -> tuple[np.ndarray, dict]:
    """Weights [O, I / G, ...] (of a transposed convolution [I, O / G, ...]) and what the reference takes besides."""
    attributes, groups = node.get_attributes(), 1
    if node.get_type_name().startswith("Group"):
        groups, weights = weights.shape[0], weights.reshape(-1, *weights.shape[2:])
    if _is_transposed(node):
        begin, end = _transposed_pads(node, data, weights.shape, attributes)
        more = {"output_padding": tuple(attributes.get("output_padding") or ())}
    else:
        begin, end = pads(data[2:], weights.shape[2:], attributes)
        more = {}
    more |= {name: tuple(attributes[name]) for name in ("strides", "dilations")}
    return weights, {"pads_begin": begin, "pads_end": end, "groups": groups, **more}


def _is_transposed(node: Node) -> bool:
    return node.get_type_name().endswith("ConvolutionBackpropData")


def _matrices(node: Node, data: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows [..., M, K] of the data and columns [..., N, K] of the weights; one tall matrix where weights have rank 2."""
    attributes = node.get_attributes()
    if data.ndim == 1:
        data = data[None]
    elif attributes["transpose_a"]:
        data = data.swapaxes(-1, -2)
    if weights.ndim == 1:
        weights = weights[None]
    elif not attributes["transpose_b"]:
        weights = weights.swapaxes(-1, -2)
    return (data.reshape(-1, data.shape[-1]) if weights.ndim == 2 else data), weights


def _output(node: Node, product: np.ndarray) -> np.ndarray:
    """[..., N, M] in the shape of the node's output."""
    return product.swapaxes(-1, -2).reshape(tuple(node.get_output_shape(0)))


def pads(space: Sequence[int], kernel: Sequence[int], attributes: dict) -> tuple[list[int], list[int]]:
    """Pads at the beginning and the end of each spatial axis, automatic ones computed."""
    mode = attributes.get("auto_pad", "explicit").lower()
    if mode == "explicit":
        return list(attributes["pads_begin"]), list(attributes["pads_end"])
    if mode == "valid":
        return [0] * len(space), [0] * len(space)
    total = [
        max(((n - 1) // s) * s + d * (k - 1) + 1 - n, 0)
        for n, k, s, d in zip(space, kernel, attributes["strides"], attributes["dilations"], strict=True)
    ]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (less, more) if mode == "same_upper" else (more, less)


def _transposed_pads(
    node: Node, data: tuple[int, ...], weights: tuple[int, ...], attributes: dict
) -> tuple[list[int], list[int]]:
    space, kernel = data[2:], weights[2:]
    mode = attributes.get("auto_pad", "explicit").lower()
    if node.get_input_size() < 3 and mode == "explicit":
        return list(attributes["pads_begin"]), list(attributes["pads_end"])
    if mode == "valid" and node.get_input_size() < 3:
        return [0] * len(space), [0] * len(space)
    extra = attributes.get("output_padding") or [0] * len(space)
    spans = zip(
        space,
        kernel,
        attributes["strides"],
        attributes["dilations"],
        extra,
        node.get_output_shape(0)[2:],
        strict=True,
    )
    total = [max(s * (n - 1) + d * (k - 1) + 1 + e - out, 0) for n, k, s, d, e, out in spans]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (more, less) if mode == "same_upper" else (less, more)


def group_kind(node: Node, channels: int) -> tuple[str, int]:
    """What `ovlpt.reference.weighted_rule` calls the node, and its number of groups."""
    groups = node.get_input_shape(1)[0] if node.get_type_name().startswith("Group") else 1
    if _is_transposed(node):
        return "transposed", groups
    if groups > 1:
        return ("depthwise" if groups == channels else "grouped"), groups
    return ("inner" if node.get_type_name() == "MatMul" else "normal"), 1


def is_single(node: Node) -> bool:
    """One output position with enough weights: some frameworks have a matrix-vector kernel for it."""
    weights, output = node.get_input_shape(1), node.get_output_shape(0)
    outputs = output[-1] if node.get_type_name() == "MatMul" else output[1]
    return prod(output) == outputs >= 4 and prod(weights) >= 8 * outputs
