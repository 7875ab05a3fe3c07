"""Checks: whether a dequantization passes an operation. Each gives None, or the `Reason` against."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from ovlpt.operations.facts import Check, Move, NodeFacts
from ovlpt.operations.moves import reshape, transpose
from ovlpt.operations.values import (
    axes_of,
    blocks_of,
    copies_values,
    interpolated_axes,
    is_scalar_like,
    mapped_axes,
    normalized,
    pad_value,
    show,
    with_rank,
)
from ovlpt.trace import Reason


def static_rank(facts: NodeFacts) -> Reason | None:
    if facts.output_shape is None or facts.shape is None:
        return Reason("dynamic_rank", "the rank is not known")
    return None


def along_channels(facts: NodeFacts) -> Reason | None:
    """Constants vary along the channel axis only."""
    if reason := static_rank(facts):
        return reason
    for values in facts.values:
        shape, missing = values.shape, facts.rank - values.ndim
        if values.size == 1 or facts.rank == 1 or (values.ndim == 1 < missing and facts.rows_fit):
            continue
        if missing == 1 or not facts.rows_fit:
            shape = (*[1] * missing, *shape)
        if shape[0] != 1 or any(size != 1 for axis, size in enumerate(shape) if axis != facts.channel_axis):
            return Reason(
                "not_per_channel",
                f"its scale or zero point has the shape {list(values.shape)} and varies along another axis than that of the channels",
            )
    return None


def constant_in_space(facts: NodeFacts) -> Reason | None:
    """Windows run over the axes from the third on. (After a MatMul the channels lie last.)"""
    if facts.channel_axis < 2 or all(values.size == 1 for values in facts.values):
        return None
    return Reason("spatial_scale", f"the scale varies along axis {facts.channel_axis}, over which its windows run")


def no_zero_point(facts: NodeFacts) -> Reason | None:
    if facts.zero_point is not None:
        return Reason("zero_point", f"the data has a zero point ({facts.zero_point.flat[0]:g}) and zero must stay zero")
    return None


def positive_scale(facts: NodeFacts) -> Reason | None:
    if (facts.scale < 0).any():
        return Reason(
            "negative_scale", f"a scale is negative ({facts.scale.min():g}) and would reverse the order of values"
        )
    return None


def scalar_like(facts: NodeFacts) -> Reason | None:
    if not all(is_scalar_like(values) for values in facts.values):
        return Reason("per_channel", "the scale or zero point differs between channels")
    return None


def per_tensor(facts: NodeFacts) -> Reason | None:
    size = max(values.size for values in facts.values)
    if size > 1:
        return Reason("per_channel", f"the dequantization has {size} values and only one can pass")
    return None


def all_of(*checks: Check) -> Check:
    def check(facts: NodeFacts) -> Reason | None:
        return next((reason for each in checks if (reason := each(facts))), None)

    return check


_PER_CHANNEL = " and the scale differs between channels"


def constant_input(port: int, what: str, where: str = "") -> Check:
    """That an input is a constant; ``where``: of which data alone it is asked."""

    def check(facts: NodeFacts) -> Reason | None:
        if port >= len(facts.constants) or facts.constants[port] is None:
            return Reason("not_constant", f"the {what} is not stored as a constant{where}")
        return None

    return check


def scales_not_reduced(facts: NodeFacts) -> Reason | None:
    axes = axes_of(facts)
    return next((reason for values in facts.values if (reason := _not_along(values, axes, facts))), None)


def _not_along(values: np.ndarray, axes: Iterable[int], facts: NodeFacts) -> Reason | None:
    aligned = with_rank(values, facts.rank)
    for axis in axes:
        if aligned.shape[axis] > 1:
            return Reason(
                "reduced_scale",
                f"the scale has {aligned.shape[axis]} values along axis {axis}, and that axis is reduced",
            )
    return None


def normalized_axes(facts: NodeFacts) -> Reason | None:
    """The scale is constant over what is normalized."""
    axes = normalized(facts)
    if axes is None:
        return Reason("not_constant", "the list of axes is not a constant")
    if 1 not in axes:
        return _not_along(facts.scale, axes, facts)
    if any(axis not in axes for axis in range(2, facts.rank)):
        return Reason(
            "normalized_axes",
            f"it normalizes over axes {sorted(axes)}, which hold the channels but not all that follows",
        )
    return scalar_like(facts)


def _in_low_precision(facts: NodeFacts) -> Reason | None:
    if facts.is_low:
        return None
    return Reason("activation_precision", "the data is real, and its scale is better left where a layer absorbs it")


def unpadded_or_zero(begin: int, end: int) -> Check:
    """Cells that the operation pads hold raw zero, which stands for zero only without a zero point."""

    def check(facts: NodeFacts) -> Reason | None:
        if facts.zero_point is None:
            return None
        pads = [facts.constants[port] for port in (begin, end)]
        if any(values is None for values in pads):
            return Reason("not_constant", "the padding is not a constant and the data has a zero point")
        if any(values.any() for values in pads):
            return Reason("zero_point", f"it pads with zeros, and the zero point is {facts.zero_point.flat[0]:g}")
        return None

    return check


def padding_not_averaged(facts: NodeFacts) -> Reason | None:
    """Averaged padding holds raw zero, which stands for zero only without a zero point."""
    attributes = facts.attributes
    if facts.zero_point is None or attributes.get("exclude-pad", True):
        return None
    padded = any(attributes.get("pads_begin", ())) or any(attributes.get("pads_end", ()))
    if padded or attributes.get("auto_pad", "explicit") in ("same_upper", "same_lower"):
        return Reason("zero_point", f"it averages padding, and the zero point is {facts.zero_point.flat[0]:g}")
    return None


def broadcastable(facts: NodeFacts) -> Reason | None:
    if all(is_scalar_like(values) for values in facts.values):
        return None
    if len(facts.output_shape) != facts.rank and facts.attributes["mode"] == "bidirectional":
        return Reason("broadcast_rank", f"the rank changes from {facts.rank} to {len(facts.output_shape)}")
    axes = mapped_axes(facts)
    if axes is None:
        return Reason(
            "not_constant",
            "the axes mapping or the target shape is not a constant and the scale differs between channels",
        )
    axis = facts.channel_axis
    if axes[axis] != axis or facts.shape[axis] is None or facts.shape[axis] != facts.output_shape[axis]:
        return Reason(
            "channel_moves",
            f"{show(facts.shape)} becomes {show(facts.output_shape)}: the channels do not stay where they are",
        )
    return None


def gatherable(facts: NodeFacts) -> Reason | None:
    if all(is_scalar_like(values) for values in facts.values):
        return None
    if facts.constants[2] is None:
        return Reason("not_constant", "the axis is not a constant and the scale differs between channels")
    axis, indices = axes_of(facts, 2)[0], facts.constants[1]
    if all(with_rank(values, facts.rank).shape[axis] == 1 for values in facts.values if values.size > 1):
        return None
    if indices is None or indices.ndim > 1:
        what = "not constant" if indices is None else f"of rank {indices.ndim}"
        return Reason("gathered_scale", f"the indices are {what}, and the scale differs along the gathered axis {axis}")
    return None


def gathered_elsewhere(facts: NodeFacts) -> Reason | None:
    """Each element is taken along one axis, and stays where it is along the others."""
    axis = facts.attributes["axis"] % facts.rank
    if any(with_rank(values, facts.rank).shape[axis] > 1 for values in facts.values):
        return Reason(
            "gathered_scale", f"each element has an index, and the scale differs along the gathered axis {axis}"
        )
    return None


def interpolable(facts: NodeFacts) -> Reason | None:
    """Means whose weights sum to one commute with scale and zero point, as copies do."""
    if "axes" in facts.attributes:
        return nearest(facts)
    if not copies_values(facts.attributes) and (reason := _in_low_precision(facts)):
        return reason
    pads = [*facts.attributes["pads_begin"], *facts.attributes["pads_end"]]
    if any(pads):
        return Reason("padding", f"it pads by {pads}")
    if all(map(is_scalar_like, facts.values)):
        return None
    axes = interpolated_axes(facts)
    if axes is None:
        return Reason("not_constant", "the list of axes is not a constant and the scale differs between channels")
    for values in facts.values:
        if any(with_rank(values, facts.rank).shape[axis] > 1 for axis in axes):
            return Reason("interpolated_axes", f"it resizes the axes {axes}, and the scale differs along one of them")
    return None


def nearest(facts: NodeFacts) -> Reason | None:
    """It only copies values."""
    attributes = facts.attributes
    if attributes["mode"] != "nearest":
        return Reason(
            "interpolation_mode",
            f"the mode is {attributes['mode']}, which computes between values; only nearest copies",
        )
    pads = [*attributes.get("pads_begin", ()), *attributes.get("pads_end", ())]
    if "axes" in attributes:  # the first version of the operation
        if any(axis < 2 for axis in attributes["axes"]):
            return Reason(
                "interpolated_axes",
                f"it resizes the axes {sorted(attributes['axes'])}, batch or channels among them",
            )
        aligned = attributes.get("align_corners")
    else:
        aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    if any(pads):
        return Reason("padding", f"it pads by {pads}")
    return Reason("align_corners", "it aligns corners") if aligned else None


def normalized_together(facts: NodeFacts) -> Reason | None:
    axes = sorted(axes_of(facts))
    if axes not in ([1], [1, 2, 3]):
        return Reason("normalized_axes", f"it normalizes over axes {axes}, not over [1] or [1, 2, 3]")
    return scalar_like(facts)


def known_count(facts: NodeFacts) -> Reason | None:
    axes = axes_of(facts)
    if facts.zero_point is not None and any(facts.shape[axis] is None for axis in axes):
        return Reason("dynamic_shape", f"the zero point is summed over the axes {axes}, and a size there is not known")
    return None


def paddable(facts: NodeFacts) -> Reason | None:
    begin, end, mode = facts.constants[1], facts.constants[2], facts.attributes["pad_mode"]
    if (value := pad_value(facts)) is None:
        return Reason("not_constant", "the padding value is not stored as a constant")
    if (begin <= 0).all() and (end <= 0).all():
        return None  # it crops at most
    padded = sorted({int(axis) for pads in (begin, end) for axis in np.flatnonzero(pads)})
    if mode == "constant":
        values = [facts.zero_point] if facts.zero_point is not None else []
        if value != 0:
            values.append(facts.scale)
        if not values:
            return None
        if len(padded) > 1:
            return Reason(
                "padded_axes",
                f"it pads the axes {padded} with a value whose integer is not 0, which is possible along one axis only",
            )
        for axis in padded:
            if facts.shape[axis] is None:
                return Reason("dynamic_shape", f"the padded axis {axis} has no known size")
            if any(
                size > 1 and other != axis
                for each in values
                for other, size in enumerate(with_rank(each, facts.rank).shape)
            ):
                return Reason("padded_axes", f"it pads axis {axis}, and the scale differs along another")
    if mode == "reflect":
        for each in facts.values:
            if each.size > 1 and any(with_rank(each, facts.rank).shape[axis] > 1 for axis in padded):
                return Reason("padded_axes", f"it reflects the axes {padded}, and the scale differs along one of them")
    return None


def sliceable(facts: NodeFacts) -> Reason | None:
    if facts.shape is None:
        return Reason("dynamic_rank", "the rank is not known")
    return None if all(values.size == 1 for values in facts.values) else slice_is_constant(facts)


def slice_is_constant(facts: NodeFacts) -> Reason | None:
    names = ("begin", "end", "strides")
    unknown = [name for name, values in zip(names, facts.constants[1:], strict=False) if values is None]
    return Reason("not_constant", f"the {unknown[0]} of the slice is not a constant") if unknown else None


def sliced(facts: NodeFacts) -> Reason | None:
    if reason := along_channels(facts):
        return reason
    if all(values.size == 1 for values in facts.values):
        return None
    names = ("begin", "end", "step", "list of axes")
    constant = (constant_input(port, names[port - 1]) for port in range(1, len(facts.constants)))
    return per_tensor(facts) if not facts.is_low else all_of(*constant)(facts)


def _lands_on_channels(move: Move, facts: NodeFacts) -> Reason | None:
    """After a scale along another axis not a layer computes in low precision."""
    rank = len(facts.output_shape)
    for values in facts.values:
        shape = with_rank(move(values, facts), rank).shape
        if any(size > 1 and axis != 1 for axis, size in enumerate(shape)):
            return Reason(
                "channel_moves", f"after it the scale would have the shape {list(shape)}, not one per channel"
            )
    return None


def squeezable(facts: NodeFacts) -> Reason | None:
    if reason := along_channels(facts) or constant_input(1, "list of axes")(facts):
        return reason
    axes = [axis for axis in axes_of(facts) if facts.shape[axis] is None]
    varies = any(with_rank(each, facts.rank).shape[axis] > 1 for each in facts.values if each.size > 1 for axis in axes)
    return Reason("channel_moves", f"the scale differs along an axis that it drops, one of {axes}") if varies else None


def transposable(facts: NodeFacts) -> Reason | None:
    if facts.is_low:
        if reason := static_rank(facts):
            return reason
        if all(map(is_scalar_like, facts.values)):
            return None
        return constant_input(1, "order")(facts) or _lands_on_channels(transpose, facts)
    if reason := along_channels(facts) or constant_input(1, "order")(facts):
        return reason
    if all(is_scalar_like(values) for values in facts.values):
        return None
    order = facts.constants[1]
    if list(order[:2]) != [0, 1]:
        return Reason("channel_moves", f"the order {order.tolist()} moves the channel axis of a scale per channel")
    for values in facts.values:
        if values.ndim not in (0, 1, facts.rank, facts.rank - 1) and values.size > 1:
            return Reason(
                "constant_rank", f"a dequantization of rank {values.ndim} has no axis for each of {facts.rank}"
            )
    return None


def reshapable(facts: NodeFacts) -> Reason | None:
    return reshapable_as_native(facts) or _batch_stays(facts)


def reshapable_as_native(facts: NodeFacts) -> Reason | None:
    """Nobody asks whether two dynamic batches are the same."""
    if reason := static_rank(facts):
        return reason
    is_per_tensor = all(map(is_scalar_like, facts.values))
    followed = facts.is_low and blocks_of(facts.shape, facts.output_shape) is not None
    if (is_per_tensor or followed) and not (facts.strict and facts.only_consumer == "MatMul"):
        if not followed:
            return along_channels(facts)
        return None if is_per_tensor else _lands_on_channels(reshape, facts)
    return all_of(
        along_channels,
        constant_input(1, "target shape", _PER_CHANNEL),
        _channels_stay,
        _channels_second,
        _scale_not_split,
    )(facts)


def _batch_stays(facts: NodeFacts) -> Reason | None:
    """``[?,2,8,8]`` as ``[?,4,4,4]`` has the channels of each image in two images."""
    before, after = facts.shape, facts.output_shape
    if all(map(is_scalar_like, facts.values)) or before[:1] != (None,) or after[:1] != (None,):
        return None
    target = facts.constants[1]
    if target is not None and target.size and target.flat[0] == 0 and facts.attributes["special_zero"]:
        return None
    if None not in (*before[1:], *after[1:]) and prod(before[1:]) == prod(after[1:]):
        return None
    return Reason("channels_merge", f"channels cannot be followed from {show(before)} to {show(after)}")


def _channels_stay(facts: NodeFacts) -> Reason | None:
    """Each channel becomes one or several neighbouring ones."""
    before, after = facts.shape, facts.output_shape
    channels = max(values.size for values in facts.values)
    if len(after) < 2 or len(before) < 2 or after[1] is None or before[0] != after[0]:
        return Reason("channels_merge", f"channels cannot be followed from {show(before)} to {show(after)}")
    if after[1] < channels or after[1] % channels:
        return Reason("channels_merge", f"{channels} channels become {after[1]}")
    return None


def _channels_second(facts: NodeFacts) -> Reason | None:
    """Not those of a MatMul, which lie last; the native library reads them as if they were not, and throws where their number
    differs from that of the second axis.
    """
    channels = max(values.size for values in facts.values)
    if facts.channel_axis < 2 or (facts.rows_fit and channels == facts.output_shape[1]):
        return None
    return Reason("channels_merge", f"its {channels} channels lie on axis {facts.channel_axis}")


def _scale_not_split(facts: NodeFacts) -> Reason | None:
    """The axes that change come after those along which the scale differs, or both begin at the channels."""
    before, after = facts.shape, facts.output_shape
    shapes = [with_rank(values, facts.rank).shape for values in facts.values]
    last = max((axis for shape in shapes for axis, size in enumerate(shape) if size != 1), default=1)
    changed = (axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    first = next(changed, min(len(before), len(after)))
    if last == first == 1 or last < first:
        return None
    text = f"the scale differs along axis {last}, which the reshape to {show(after)} takes apart"
    return Reason("channels_merge", text)


def tileable(facts: NodeFacts) -> Reason | None:
    if reason := _in_low_precision(facts):
        return reason
    return None if all(map(is_scalar_like, facts.values)) else constant_input(1, "number of copies")(facts)


def rollable(facts: NodeFacts) -> Reason | None:
    if reason := _in_low_precision(facts):
        return reason
    if all(map(is_scalar_like, facts.values)):
        return None
    return all_of(constant_input(1, "shift"), constant_input(2, "list of axes"))(facts)
