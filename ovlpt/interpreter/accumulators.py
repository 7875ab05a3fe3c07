"""The exact integer accumulator of a weighted node."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovlpt.openvino_api import Node
from ovlpt.reference import convolution_accumulator, matrix_accumulator, transposed_accumulator


def accumulator(node: Node, data: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int64, of the shape of the node's output.

    ``data`` and ``weights`` hold integers, zero points subtracted, of any numeric type and in OpenVINO's
    layouts: weights [O, I, ...], of a GroupConvolution [G, O / G, I / G, ...], of a ConvolutionBackpropData
    [I, O, ...].
    """
    data, weights, attributes = data.astype(np.int32), weights.astype(np.int32), node.get_attributes()
    if node.get_type_name() == "MatMul":
        return _inner_product(data, weights, attributes)
    spatial = {name: tuple(attributes[name]) for name in ("strides", "dilations")}
    if node.get_type_name() == "ConvolutionBackpropData":
        extra = tuple(attributes.get("output_padding") or ())
        begin, end = _transposed_pads(node, data.shape, weights.shape, attributes)
        return transposed_accumulator(data, weights, pads_begin=begin, pads_end=end, output_padding=extra, **spatial)
    groups = 1
    if node.get_type_name() == "GroupConvolution":
        groups, weights = weights.shape[0], weights.reshape(-1, *weights.shape[2:])
    begin, end = pads(data.shape[2:], weights.shape[2:], attributes)
    return convolution_accumulator(data, weights, pads_begin=begin, pads_end=end, groups=groups, **spatial)


def _inner_product(data: np.ndarray, weights: np.ndarray, attributes: dict) -> np.ndarray:
    vector = data.ndim == 1, weights.ndim == 1
    if vector[0]:
        data = data[None]
    elif attributes["transpose_a"]:
        data = data.swapaxes(-1, -2)
    if vector[1]:
        weights = weights[:, None]
    elif attributes["transpose_b"]:
        weights = weights.swapaxes(-1, -2)
    if weights.ndim == 2:  # one tall product, not one per batch
        rows, shape = data.reshape(-1, data.shape[-1]), data.shape[:-1]
    else:
        rows, shape = data, None
    largest = int(np.abs(rows).max(initial=0))
    product = matrix_accumulator(weights.swapaxes(-1, -2), rows.swapaxes(-1, -2), largest).swapaxes(-1, -2)
    product = product if shape is None else product.reshape(*shape, -1)
    product = product[..., 0, :] if vector[0] else product
    return product[..., 0] if vector[1] else product


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
    kind = node.get_type_name()
    if kind == "GroupConvolution":
        groups = node.get_input_shape(1)[0]
        return ("depthwise" if groups == channels else "grouped"), groups
    return {"Convolution": "normal", "ConvolutionBackpropData": "transposed", "MatMul": "inner"}[kind], 1


def is_single(node: Node) -> bool:
    """One output position with enough weights: some frameworks have a matrix-vector kernel for it."""
    weights, output = node.get_input_shape(1), node.get_output_shape(0)
    outputs = output[-1] if node.get_type_name() == "MatMul" else output[1]
    return prod(output) == outputs >= 4 and prod(weights) >= 8 * outputs
