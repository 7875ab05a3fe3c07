"""THE TABLE: one row per operation answers every question about it.

A row says which nodes it means, how a dequantization passes them (a pure function: constant before → constant after),
under which conditions, and whether the output stays in low precision. Checks and moves receive plain values, never
nodes. A check returns None or the `Reason` against.

Five kinds of row:

``passes``       moves data; the dequantization goes through, constants at most rearranged
``elementwise``  computes element by element
``reduces``      computes over axes
``weighted``     the operations for which all this is done: they run on integers
``absent``       no rule, and why
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ovlpt.layered import LayeredTable
from ovlpt.trace import Reason

Shape = tuple[int | None, ...]  # None: a dynamic dimension
Kind = Literal["passes", "elementwise", "reduces", "weighted", "absent"]


@dataclass(frozen=True)
class NodeFacts:
    """What a check or a move may know of a node."""

    shape: Shape | None  # of input 0; None: dynamic rank
    output_shape: Shape | None  # of output 0
    attributes: Mapping[str, object]
    constants: tuple[np.ndarray | None, ...]  # per input: its value where it is a Constant
    scale: np.ndarray  # of the dequantization on input 0, float32; ones where there is none
    zero_point: np.ndarray | None
    channel_axis: int = 1
    only_consumer: str | None = None  # its type, where there is just one
    strict: bool = False  # Params.reshape_ignore_per_tensor_quantization_check
    native_only: bool = False  # Params.native_only
    is_low: bool = True  # the data is in low precision, not the real sum of a weighted operation

    @property
    def as_native(self) -> bool:
        """Whether only what the native library does is done: a scale is better left where a layer takes it in."""
        return self.native_only or not self.is_low

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def values(self) -> tuple[np.ndarray, ...]:
        return (self.scale,) if self.zero_point is None else (self.zero_point, self.scale)


Check = Callable[[NodeFacts], Reason | None]
Move = Callable[[np.ndarray, NodeFacts], np.ndarray]


def keep(values: np.ndarray, _: NodeFacts) -> np.ndarray:
    return values


def _scalar_like(values: np.ndarray) -> bool:
    return values.size == 1 or bool((values == values.flat[0]).all())


def _aligned(values: np.ndarray, rank: int) -> np.ndarray:
    """The constant with leading ones up to ``rank``."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape) if values.ndim < rank else values


# Checks: None, or the reason against


def static_rank(site: NodeFacts) -> Reason | None:
    if site.output_shape is None or site.shape is None:
        return Reason("dynamic_rank", "the rank is not known")
    return None


def along_channels(site: NodeFacts) -> Reason | None:
    """Constants vary along the channel axis only."""
    if reason := static_rank(site):
        return reason
    for values in site.values:
        shape = values.shape
        if values.size == 1:
            continue
        if site.rank - len(shape) == 1:
            shape = (1, *shape)
        if len(shape) == 1:
            continue
        if shape[0] != 1 or any(size != 1 for axis, size in enumerate(shape) if axis != site.channel_axis):
            return Reason(
                "not_per_channel",
                f"the dequantization has the shape {list(values.shape)} and varies off the channel axis",
            )
    return None


def _constant_in_space(site: NodeFacts) -> Reason | None:
    """Windows run over the axes from the third on. (After a MatMul the channels lie last.) The native library fails."""
    if site.native_only or site.channel_axis < 2 or all(values.size == 1 for values in site.values):
        return None
    return Reason("spatial_scale", f"the scale varies along axis {site.channel_axis}, over which its windows run")


def no_zero_point(site: NodeFacts) -> Reason | None:
    if site.zero_point is not None:
        return Reason("zero_point", f"the data has a zero point ({site.zero_point.flat[0]:g}) and zero must stay zero")
    return None


def _no_kink_moved(site: NodeFacts) -> Reason | None:
    return no_zero_point(site) if site.native_only else None


def positive_scale(site: NodeFacts) -> Reason | None:
    if (site.scale < 0).any():
        return Reason(
            "negative_scale", f"a scale is negative ({site.scale.min():g}) and the order of values would turn"
        )
    return None


def scalar_like(site: NodeFacts) -> Reason | None:
    if not all(_scalar_like(values) for values in site.values):
        return Reason("per_channel", "the scale or zero point differs between channels")
    return None


def per_tensor(site: NodeFacts) -> Reason | None:
    size = max(values.size for values in site.values)
    if size > 1:
        return Reason("per_channel", f"the dequantization has {size} values and only one can pass")
    return None


def all_of(*checks: Check) -> Check:
    def check(site: NodeFacts) -> Reason | None:
        return next((reason for each in checks if (reason := each(site))), None)

    return check


def _axes(site: NodeFacts, port: int = 1) -> list[int] | None:
    axes = site.constants[port] if port < len(site.constants) else None
    return None if axes is None else [int(axis) % site.rank for axis in np.ravel(axes)]


def constant_input(port: int, what: str) -> Check:
    def check(site: NodeFacts) -> Reason | None:
        if port >= len(site.constants) or site.constants[port] is None:
            return Reason("not_constant", f"the {what} is not a constant")
        return None

    return check


def _scales_not_reduced(site: NodeFacts) -> Reason | None:
    axes = _axes(site)
    return next((reason for values in site.values if (reason := _not_along(values, axes, site))), None)


def _not_along(values: np.ndarray, axes: Iterable[int], site: NodeFacts) -> Reason | None:
    aligned = _aligned(values, site.rank)
    for axis in axes:
        if aligned.shape[axis] > 1:
            return Reason(
                "reduced_scale",
                f"the scale has {aligned.shape[axis]} values along axis {axis}, and that axis is reduced",
            )
    return None


def _normalized_axes(site: NodeFacts) -> Reason | None:
    """The scale is constant over what is normalized."""
    if len(site.constants) > 1:
        if site.constants[1] is None:
            return Reason("not_constant", "the list of axes is not a constant")
        axes = _axes(site)
    else:
        axes = site.attributes.get("reduction_axes") or range(
            1 if site.attributes.get("across_channels") else 2, site.rank
        )
    if 1 not in axes:
        return _not_along(site.scale, axes, site)
    if any(axis not in axes for axis in range(2, site.rank)):
        return Reason(
            "normalized_axes",
            f"it normalizes over axes {sorted(axes)}, which hold the channels but not all that follows",
        )
    return scalar_like(site)


def _in_low_precision(site: NodeFacts) -> Reason | None:
    if site.is_low:
        return None
    return Reason("activation_precision", "the data is real, and its scale is better left where a layer takes it in")


def _unpadded_or_zero(begin: int, end: int) -> Check:
    """Cells that the operation pads hold raw zero, which stands for zero only without a zero point."""

    def check(site: NodeFacts) -> Reason | None:
        if site.native_only or site.zero_point is None:
            return None
        pads = [site.constants[port] for port in (begin, end)]
        if any(values is None for values in pads):
            return Reason("not_constant", "the padding is not a constant and the data has a zero point")
        if any(values.any() for values in pads):
            return Reason("zero_point", f"it pads with zeros, and the zero point is {site.zero_point.flat[0]:g}")
        return None

    return check


def _padding_not_averaged(site: NodeFacts) -> Reason | None:
    """Averaged padding holds raw zero, which stands for zero only without a zero point."""
    attributes = site.attributes
    if site.native_only or site.zero_point is None or attributes.get("exclude-pad", True):
        return None
    padded = any(attributes.get("pads_begin", ())) or any(attributes.get("pads_end", ()))
    if padded or attributes.get("auto_pad", "explicit") in ("same_upper", "same_lower"):
        return Reason("zero_point", f"it averages padding, and the zero point is {site.zero_point.flat[0]:g}")
    return None


def _broadcastable(site: NodeFacts) -> Reason | None:
    if len(site.output_shape) != site.rank and site.attributes["mode"] == "bidirectional":
        return Reason("broadcast_rank", f"the rank changes from {site.rank} to {len(site.output_shape)}")
    if all(_scalar_like(values) for values in site.values):
        return None
    axes = _mapped_axes(site)
    if axes is None:
        return Reason(
            "not_constant",
            "the axes mapping or the target shape is not a constant and the scale differs between channels",
        )
    axis = site.channel_axis
    if axes[axis] != axis or site.shape[axis] is None or site.shape[axis] != site.output_shape[axis]:
        return Reason(
            "channel_moves",
            f"{_show(site.shape)} becomes {_show(site.output_shape)}: the channels do not stay where they are",
        )
    return None


def _mapped_axes(site: NodeFacts) -> list[int] | None:
    """Where each axis of the data goes."""
    if site.constants[1] is None:
        return None
    if len(site.constants) < 3:
        return list(range(len(site.output_shape) - site.rank, len(site.output_shape)))
    return None if site.constants[2] is None else [int(axis) for axis in np.ravel(site.constants[2])]


def _gatherable(site: NodeFacts) -> Reason | None:
    if all(_scalar_like(values) for values in site.values):
        return None
    if site.constants[2] is None:
        return Reason("not_constant", "the axis is not a constant and the scale differs between channels")
    axis, indices = _axes(site, 2)[0], site.constants[1]
    if all(_aligned(values, site.rank).shape[axis] == 1 for values in site.values if values.size > 1):
        return None
    if indices is None or indices.ndim > 1:
        what = "not constant" if indices is None else f"of rank {indices.ndim}"
        return Reason("gathered_scale", f"the indices are {what}, and the scale differs along the gathered axis {axis}")
    return None


def _copies(attributes: Mapping[str, object]) -> bool:
    return attributes["mode"] == "nearest"


def _interpolated_axes(site: NodeFacts) -> list[int] | None:
    """Axes are the last input where it is an integer and not the sizes; all without them; None: not known."""
    if len(site.constants) > 2:
        if site.constants[-1] is None:
            return None
        if np.issubdtype(site.constants[-1].dtype, np.integer):
            return _axes(site, -1)
    return list(range(site.rank))


def _interpolable(site: NodeFacts) -> Reason | None:
    """Means whose weights sum to one commute with scale and zero point, as copies do."""
    if site.native_only or "axes" in site.attributes:
        return _nearest(site)
    if not _copies(site.attributes) and (reason := _in_low_precision(site)):
        return reason
    pads = [*site.attributes["pads_begin"], *site.attributes["pads_end"]]
    if any(pads):
        return Reason("padding", f"it pads by {pads}")
    if all(map(_scalar_like, site.values)):
        return None
    axes = _interpolated_axes(site)
    if axes is None:
        return Reason("not_constant", "the list of axes is not a constant and the scale differs between channels")
    for values in site.values:
        if any(_aligned(values, site.rank).shape[axis] > 1 for axis in axes):
            return Reason("interpolated_axes", f"it resizes the axes {axes}, and the scale differs along one of them")
    return None


def _nearest(site: NodeFacts) -> Reason | None:
    attributes = site.attributes
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
        pads = pads if not site.native_only else [*attributes["pads_begin"][:1], *attributes["pads_end"][:1]]
    else:
        aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    if any(pads):
        return Reason("padding", f"it pads by {pads}")
    return Reason("align_corners", "it aligns corners") if aligned else None


def _normalized_together(site: NodeFacts) -> Reason | None:
    axes = sorted(_axes(site))
    if axes not in ([1], [1, 2, 3]):
        return Reason("normalized_axes", f"it normalizes over axes {axes}, not over [1] or [1, 2, 3]")
    return scalar_like(site)


def _known_count(site: NodeFacts) -> Reason | None:
    axes = _axes(site)
    if site.zero_point is not None and any(site.shape[axis] is None for axis in axes):
        return Reason("dynamic_shape", f"the zero point is summed over the axes {axes}, and a size there is not known")
    return None


def _paddable(site: NodeFacts) -> Reason | None:
    begin, end, mode = site.constants[1], site.constants[2], site.attributes["pad_mode"]
    if (begin <= 0).all() and (end <= 0).all():
        return None  # it crops at most
    padded = sorted({int(axis) for pads in (begin, end) for axis in np.flatnonzero(pads)})
    value = _pad_value(site)
    if mode == "constant":
        values = [site.zero_point] if site.zero_point is not None else []
        if value != 0:
            values.append(site.scale)
        if not values:
            return None
        if len(padded) > 1:
            return Reason(
                "padded_axes",
                f"it pads the axes {padded} with a value that is not a raw zero; one axis is possible",
            )
        for axis in padded:
            if site.shape[axis] is None:
                return Reason("dynamic_shape", f"the padded axis {axis} has no known size")
            if any(
                size > 1 and other != axis
                for each in values
                for other, size in enumerate(_aligned(each, site.rank).shape)
            ):
                return Reason("padded_axes", f"it pads axis {axis}, and the scale differs along another")
    if mode == "reflect":
        checked = (site.scale,) if site.native_only else site.values
        for each in checked:
            if each.size > 1 and any(_aligned(each, site.rank).shape[axis] > 1 for axis in padded):
                return Reason("padded_axes", f"it reflects the axes {padded}, and the scale differs along one of them")
    return None


def _pad_value(site: NodeFacts) -> float:
    if site.attributes["pad_mode"] != "constant" or len(site.constants) < 4:
        return 0.0
    return float(np.ravel(site.constants[3])[0])


def _sliceable(site: NodeFacts) -> Reason | None:
    if site.shape is None:
        return Reason("dynamic_rank", "the rank is not known")
    one_value = all(values.size == 1 for values in site.values)
    if one_value and (site.zero_point is not None or not site.native_only):
        return None
    names = ("begin", "end", "strides")
    unknown = [name for name, values in zip(names, site.constants[1:], strict=False) if values is None]
    return Reason("not_constant", f"the {unknown[0]} of the slice is not a constant") if unknown else None


def _sliced(site: NodeFacts) -> Reason | None:
    if reason := along_channels(site):
        return reason
    if all(values.size == 1 for values in site.values):
        return None
    names = ("begin", "end", "step", "list of axes")
    constant = (constant_input(port, names[port - 1]) for port in range(1, len(site.constants)))
    return per_tensor(site) if site.as_native else all_of(*constant)(site)


# Moves: the constant after from the constant before


def _reduce(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values.reshape(())
    if site.attributes.get("keep_dims"):
        return values
    return np.squeeze(_aligned(values, site.rank), tuple(_axes(site)))


def _sum_of_zero_points(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    return _reduce(values * np.float32(np.prod([site.shape[axis] for axis in _axes(site)])), site)


def _squeeze(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    return values.reshape(()) if values.size == 1 else np.squeeze(_aligned(values, site.rank), tuple(_axes(site)))


def _unsqueeze(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    return np.expand_dims(_aligned(values, site.rank), tuple(int(axis) for axis in np.ravel(site.constants[1])))


def _shuffle(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    axis, groups = site.attributes["axis"] % site.rank, site.attributes["group"]
    aligned = _aligned(values, site.rank)
    if values.size == 1 or aligned.shape[axis] == 1:
        return values
    order = np.arange(aligned.shape[axis]).reshape(groups, -1).T.reshape(-1)
    return np.take(aligned, order, axis)


def _broadcast(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if _scalar_like(values):
        return values
    shape = [1] * len(site.output_shape)
    for axis, size in zip(_mapped_axes(site), _aligned(values, site.rank).shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def _gather(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if _scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    axis, aligned = _axes(site, 2)[0], _aligned(values, site.rank)
    if aligned.shape[axis] == 1:
        new_axes = len(site.output_shape) - site.rank + 1
        return np.take(aligned, np.zeros((1,) * new_axes, np.int64), axis)
    return _as_scalar(np.take(aligned, site.constants[1], axis))


def _as_scalar(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1)[0].reshape(()) if _scalar_like(values) else values


def _slice(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    begin, end, step = (np.ravel(site.constants[port]).tolist() for port in (1, 2, 3))
    axes = _axes(site, 4) if len(site.constants) > 4 else range(len(begin))
    aligned, entries = _aligned(values, site.rank), [slice(None)] * site.rank
    for axis, *bounds in zip(axes, begin, end, step, strict=True):
        if aligned.shape[axis] > 1:
            entries[axis] = slice(*bounds)
    return aligned[tuple(entries)]


def _strided_slice(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Sliced like the data, but for axes along which the constant does not vary."""
    if values.size == 1:
        return values.reshape(())
    aligned, attributes = _aligned(values, site.rank), site.attributes
    begin, end = (np.ravel(site.constants[port]).tolist() for port in (1, 2))
    strides = np.ravel(site.constants[3]).tolist() if len(site.constants) > 3 else [1] * len(begin)

    def masked(name: str, entry: int) -> bool:
        mask = attributes[name]
        return entry < len(mask) and bool(mask[entry])

    entries: list = []
    axis = 0
    for entry, stride in enumerate(strides):
        if masked("ellipsis_mask", entry):
            later = range(entry + 1, len(strides))
            entries.append(Ellipsis)
            axis = site.rank - sum(not masked("new_axis_mask", other) for other in later)
        elif masked("new_axis_mask", entry):
            entries.append(None)
        else:
            whole = aligned.shape[axis] == 1
            if masked("shrink_axis_mask", entry):
                entries.append(0 if whole else begin[entry])
            elif whole:
                entries.append(slice(None))
            else:
                first = None if masked("begin_mask", entry) else begin[entry]
                last = None if masked("end_mask", entry) else end[entry]
                entries.append(slice(first, last, stride))
            axis += 1
    return _as_scalar(aligned[tuple(entries)])


def _pad_with(fill: float) -> Move:
    """Padded cells hold ``value`` itself: it is stored as it is, with zero point 0 and scale 1."""

    def move(values: np.ndarray, site: NodeFacts) -> np.ndarray:
        mode, begin, end = site.attributes["pad_mode"], site.constants[1], site.constants[2]
        adds = (begin > 0).any() or (end > 0).any()
        if mode == "constant" and values.size == 1 and adds and (fill == 0 or _pad_value(site) != 0):
            axis = int(np.flatnonzero((begin != 0) | (end != 0))[0])
            shape = [1] * site.rank
            shape[axis] = site.shape[axis] or 1
            values = np.broadcast_to(values.reshape(-1)[0], shape)
        if values.size == 1:
            return values
        aligned = _aligned(values, site.rank)
        widths = np.stack([begin, end], 1) * (np.array(aligned.shape) > 1)[:, np.newaxis]
        filled = {"constant_values": fill} if mode == "constant" else {}
        padded = np.pad(aligned, np.maximum(widths, 0), mode, **filled)
        crops = np.minimum(widths, 0)
        return padded[
            tuple(slice(-first, size + last) for (first, last), size in zip(crops, padded.shape, strict=True))
        ]

    return move


def _lands_on_channels(move: Move, site: NodeFacts) -> Reason | None:
    """After a scale along another axis not a layer computes in low precision."""
    rank = len(site.output_shape)
    for values in site.values:
        shape = _aligned(move(values, site), rank).shape
        if any(size > 1 and axis != 1 for axis, size in enumerate(shape)):
            return Reason(
                "channel_moves", f"after it the scale would have the shape {list(shape)}, not one per channel"
            )
    return None


def _transposable(site: NodeFacts) -> Reason | None:
    if not site.as_native:
        if reason := static_rank(site):
            return reason
        if all(map(_scalar_like, site.values)):
            return None
        return constant_input(1, "order")(site) or _lands_on_channels(_transpose, site)
    if reason := along_channels(site) or constant_input(1, "order")(site):
        return reason
    if all(_scalar_like(values) for values in site.values):
        return None
    order = site.constants[1]
    if list(order[:2]) != [0, 1]:
        return Reason("channel_moves", f"the order {order.tolist()} moves the channel axis of a scale per channel")
    for values in site.values:
        if values.ndim not in (0, 1, site.rank, site.rank - 1) and values.size > 1:
            return Reason(
                "constant_rank", f"a dequantization of rank {values.ndim} has no axis for each of {site.rank}"
            )
    return None


def _transpose(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1 or (site.as_native and values.ndim <= 1):
        return values
    if site.constants[1] is None:
        return _as_scalar(values)
    return np.transpose(_aligned(values, site.rank), np.ravel(site.constants[1]) if site.constants[1].size else None)


def _reshapable(site: NodeFacts) -> Reason | None:
    if reason := static_rank(site):
        return reason
    before, after = site.shape, site.output_shape
    per_tensor = all(_scalar_like(values) for values in site.values)
    followed = not site.as_native and _blocks(before, after) is not None
    if (per_tensor or followed) and not (site.strict and site.only_consumer == "MatMul"):
        if not followed:
            return along_channels(site)
        return None if per_tensor else _lands_on_channels(_reshape, site)
    if reason := along_channels(site):
        return reason
    if site.constants[1] is None:
        return Reason("not_constant", "the target shape is not a constant and the scale differs between channels")
    channels = max(values.size for values in site.values)
    if len(after) < 2 or len(before) < 2 or after[1] is None or before[0] != after[0]:
        return Reason("channels_merge", f"channels cannot be followed from {_show(before)} to {_show(after)}")
    if after[1] < channels or after[1] % channels:
        return Reason("channels_merge", f"{channels} channels become {after[1]}")
    last = max(
        (axis for values in site.values for axis, size in enumerate(_aligned(values, len(before)).shape) if size != 1),
        default=1,
    )
    first = next(
        (axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    if (last == 1 and first == 1) or last < first:
        return None
    return Reason(
        "channels_merge",
        f"the scale differs along axis {last}, which the reshape to {_show(after)} takes apart",
    )


def _tileable(site: NodeFacts) -> Reason | None:
    if reason := _in_low_precision(site):
        return reason
    return None if all(map(_scalar_like, site.values)) else constant_input(1, "number of copies")(site)


def _tile(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Copied along the axes on which it varies."""
    if values.size == 1:
        return values
    rank = max(site.rank, site.constants[1].size)
    aligned, copies = _aligned(values, rank), _aligned(np.ravel(site.constants[1]), 1)
    copies = np.concatenate([np.ones(rank - copies.size, int), copies])
    return np.tile(aligned, np.where(np.array(aligned.shape) > 1, copies, 1))


def _rollable(site: NodeFacts) -> Reason | None:
    if reason := _in_low_precision(site):
        return reason
    if all(map(_scalar_like, site.values)):
        return None
    return all_of(constant_input(1, "shift"), constant_input(2, "list of axes"))(site)


def _roll(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    if values.size == 1:
        return values
    axes = _axes(site, 2)
    return np.roll(_aligned(values, site.rank), np.broadcast_to(np.ravel(site.constants[1]), len(axes)), axes)


def _show(shape: Shape) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def _blocks(before: Shape, after: Shape) -> list[tuple[range, range]] | None:
    """Neighbouring axes before and after a Reshape that hold the same elements; None where sizes do not tell.

    One dynamic dimension on each side is the same where all others agree.
    """
    if before.count(None) > 1 or after.count(None) > 1 or 0 in (*before, *after):
        return None
    blocks, ends = [], [0, 0]
    while ends[0] < len(before) and ends[1] < len(after):
        begin, sizes = tuple(ends), [before[ends[0]], after[ends[1]]]
        ends = [ends[0] + 1, ends[1] + 1]
        while sizes[0] != sizes[1]:
            if None in sizes:
                return None
            side = 0 if sizes[0] < sizes[1] else 1
            shape = (before, after)[side]
            if ends[side] == len(shape) or shape[ends[side]] is None:
                return None
            sizes[side] *= shape[ends[side]]
            ends[side] += 1
        blocks.append((range(begin[0], ends[0]), range(begin[1], ends[1])))
    if not blocks or any(size != 1 for size in (*before[ends[0] :], *after[ends[1] :])):
        return None
    last = blocks.pop()
    return [*blocks, (range(last[0].start, len(before)), range(last[1].start, len(after)))]


def _reshape(values: np.ndarray, site: NodeFacts) -> np.ndarray:
    """Spread over the blocks of axes in which it varies, and one again along axes on which it then does not."""
    if _scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    blocks = None if site.as_native else _blocks(site.shape, site.output_shape)
    if blocks is None:
        channels = site.output_shape[1]
        repeated = np.repeat(values.reshape(-1), channels // values.size)
        return repeated.reshape(1, channels, *(1 for _ in site.output_shape[2:]))
    aligned = _aligned(values, site.rank)
    spread, shape = [1] * site.rank, [1] * len(site.output_shape)
    for axes, others in blocks:
        if any(aligned.shape[axis] > 1 for axis in axes):
            for axis in axes:
                spread[axis] = site.shape[axis] or aligned.shape[axis]
            for axis in others:
                shape[axis] = site.output_shape[axis] or aligned.shape[axes[0]]
    moved = np.broadcast_to(aligned, spread).reshape(shape)
    for axis in range(moved.ndim):
        first = moved.take([0], axis)
        moved = first if (moved == first).all() else moved
    return moved


@dataclass(frozen=True)
class Operation:
    """One row."""

    name: str
    kind: Kind
    opsets: tuple[str, ...] = ("opset1",)
    check: Check = along_channels
    move: Move = keep
    move_zero_point: Move | None = None  # where it differs from the scale's
    precision_preserved: bool = False
    preserves_where: Callable[[Mapping[str, object]], bool] | None = None  # by attributes; not with native_only
    data_inputs: tuple[int, ...] | None = (0,)  # ports a restriction may name; None: any number (Concat)
    weights_axes: tuple[int, ...] = ()  # output channels of the weights
    why_absent: Reason | None = None
    added: tuple[str, ...] = ()  # versions for which the native library has no rule: not with Params.native_only

    @property
    def versions(self) -> tuple[str, ...]:
        return (*self.opsets, *self.added)

    @property
    def type_names(self) -> list[str]:
        """As `WrapType` wants them: "opset1.MaxPool"."""
        return [f"{opset}.{self.name}" for opset in self.versions]

    def has_rule(self, native_only: bool = False) -> bool:
        """Whether there is a rule for any version."""
        return self.kind != "absent" and bool(self.opsets if native_only else self.versions)

    def preserves_precision(self, attributes: Mapping[str, object], native_only: bool = False) -> bool:
        """Whether the output of a node with these attributes has the element type of the data."""
        if native_only or self.preserves_where is None:
            return self.precision_preserved
        return self.precision_preserved and self.preserves_where(attributes)

    def why_no_rule(self, opset: str, native_only: bool = False) -> Reason | None:
        """Why there is no rule for the operation in this version ("opset14"); None where there is one."""
        if self.why_absent is not None:
            return self.why_absent
        versions = self.opsets if native_only else self.versions
        if opset in versions:
            return None
        if not versions:
            return Reason("no_rule", f"the native library has no rule for {self.name}")
        known = " and ".join(versions)
        return Reason("no_rule", f"this is {self.name} of {opset}, and there is a rule for that of {known} only")


def _passes(name: str, *checks: Check, move: Move = keep, opsets: Sequence[str] = ("opset1",), **more) -> Operation:
    check = all_of(*checks) if checks else along_channels
    return Operation(name, "passes", tuple(opsets), check, move, precision_preserved=True, **more)


def _reduces(name: str, *checks: Check, **more) -> Operation:
    check = all_of(static_rank, constant_input(1, "list of axes"), _scales_not_reduced, *checks)
    return Operation(name, "reduces", check=check, move=_reduce, **more)


def _absent(text: str, names: str) -> tuple[Operation, ...]:
    """Rows for names like "Gelu-2,7": the operation and its opset versions (none: 1)."""
    rows = []
    for name, _, versions in (each.partition("-") for each in names.split()):
        opsets = tuple(f"opset{version}" for version in (versions or "1").split(","))
        rows.append(Operation(name, "absent", opsets, why_absent=Reason("no_rule", text.format(name))))
    return tuple(rows)


_NONLINEAR = "{} is not linear, so a scale cannot pass it"
_ABSENT = (
    *_absent(
        _NONLINEAR,
        "Acos Acosh-4 Asin Asinh-4 Atan Atanh-4 Cos Cosh Elu Erf Exp Gelu-2,7 HardSigmoid HSigmoid-5 HSwish-4 Log LogSoftmax-5 "
        "Mish-4 Power ReduceL2-4 ReduceProd Selu Sigmoid Sin Sinh Softmax-1,8 SoftPlus-4 SoftSign-9 Sqrt Swish-4 Tan Tanh",
    ),
    *_absent(
        "a quotient has no scale that its inputs share; a division by a constant becomes a Multiply before", "Divide"
    ),
    *_absent(
        "{} compares two inputs, whose scales differ",
        "Equal Greater GreaterEqual Less LessEqual NotEqual",
    ),
    *_absent("{} multiplies differences with themselves, and no rule separates the scale", "SquaredDifference"),
    *_absent("a zero point is known; a difference of two tensors has no rule", "Subtract"),
    *_absent("{} divides by values of the data, and no rule separates the scale", "GRN LRN"),
    *_absent(
        "{} is made an MVN, which has a rule, unless the device has a kernel of it, as GPUs do", "GroupNormalization-12"
    ),
    *_absent("the batch's statistics belong into the layer before, and {} stands alone", "BatchNormInference-1,5"),
    *_absent(
        "{} computes between values, and there is no rule for its weights",
        "GridSample-9 ROIAlign-3,9 ROIPooling PSROIPooling",
    ),
    *_absent(
        "the native library has no rule for {} either, so plugins run it in float",
        "CumSum-3 DeformableConvolution-1,8 BinaryConvolution",
    ),
    *_absent(
        "{} is decomposed into MatMul, which has rules, unless it has more than two operands or takes a diagonal",
        "Einsum-7",
    ),
    *_absent(
        "{} is decomposed into MatMul and Softmax, which have rules, unless the plugin fuses it whole, in float",
        "ScaledDotProductAttention-13",
    ),
    *_absent(
        "there is a rule for sequences (LSTMSequence, GRUSequence), none for {}",
        "GRUCell-3 LSTMCell-1,4 RNNCell RNNSequence-5",
    ),
    *_absent("it averages over windows of its own choice, and there is no rule", "AdaptiveAvgPool-8"),
    *_absent(
        "it moves data, but there is no rule: the native library has none either",
        "AdaptiveMaxPool-8 EmbeddingBagOffsetsSum-3 ExtractImagePatches-3 GatherElements-6 GatherND-5,8 Reverse "
        "ReverseSequence ScatterElementsUpdate-3,12 ScatterNDUpdate-3,15 ScatterUpdate-3 SpaceToDepth",
    ),
    *_absent(
        "it sorts or selects, and indices come with its values: there is no rule",
        "NonMaxSuppression-1,3,4,5,9 TopK-1,3,11",
    ),
    *_absent("the sign or the magnitude alone has no rule", "Abs Negative Sign"),
    *_absent("it rounds real values, which a scale changes", "Ceiling Floor FloorMod Mod Round-5"),
)

_ADDED = {"precision_preserved": True, "added": ("opset1",)}
_ROWS = (
    # weighted
    Operation("Convolution", "weighted", data_inputs=(0, 1), weights_axes=(0,)),
    Operation("GroupConvolution", "weighted", data_inputs=(0, 1), weights_axes=(0, 1)),
    Operation("ConvolutionBackpropData", "weighted", data_inputs=(0, 1), weights_axes=(1,)),
    Operation(
        "GroupConvolutionBackpropData", "weighted", (), data_inputs=(0, 1), weights_axes=(0, 2), added=("opset1",)
    ),
    Operation("MatMul", "weighted", check=static_rank, data_inputs=(0, 1)),
    Operation("LSTMSequence", "weighted", ("opset5",), data_inputs=(0, 1, 4, 5)),
    Operation("GRUSequence", "weighted", ("opset5",), data_inputs=(0, 1, 3, 4)),
    # elementwise
    Operation("Add", "elementwise", data_inputs=(0, 1)),
    Operation("Multiply", "elementwise", data_inputs=(0, 1)),
    Operation("Clamp", "elementwise", check=all_of(along_channels, scalar_like)),
    Operation("FakeQuantize", "elementwise", check=static_rank),
    Operation("Maximum", "elementwise", (), positive_scale, data_inputs=(0, 1), **_ADDED),
    Operation("Minimum", "elementwise", (), positive_scale, data_inputs=(0, 1), **_ADDED),
    Operation(
        "PRelu",
        "elementwise",
        check=all_of(along_channels, constant_input(1, "slope"), _no_kink_moved, positive_scale),
    ),
    Operation(
        "Relu",
        "elementwise",
        check=all_of(along_channels, _no_kink_moved, positive_scale),
        precision_preserved=True,
    ),
    # reduces
    Operation(
        "AvgPool",
        "reduces",
        check=all_of(along_channels, _constant_in_space, _padding_not_averaged),
        added=("opset14",),
    ),
    Operation(
        "MaxPool",
        "reduces",
        check=all_of(along_channels, _constant_in_space, positive_scale),
        precision_preserved=True,
        added=("opset8", "opset14"),
    ),
    Operation("MVN", "reduces", ("opset2", "opset6"), check=all_of(along_channels, no_zero_point, _normalized_axes)),
    Operation(
        "NormalizeL2",
        "reduces",
        check=all_of(along_channels, constant_input(1, "list of axes"), no_zero_point, _normalized_together),
    ),
    _reduces("ReduceMax", positive_scale, precision_preserved=True),
    _reduces("ReduceMean"),
    _reduces("ReduceMin", positive_scale, precision_preserved=True),
    _reduces("ReduceSum", _known_count, move_zero_point=_sum_of_zero_points),
    # passes
    Operation("Assign", "passes", ("opset3", "opset6"), check=all_of(along_channels, no_zero_point)),
    _passes("BatchToSpace", along_channels, per_tensor, opsets=("opset2",)),
    _passes("Broadcast", along_channels, _broadcastable, move=_broadcast, opsets=("opset1", "opset3")),
    Operation("Concat", "passes", check=static_rank, precision_preserved=True, data_inputs=None),
    _passes("DepthToSpace", along_channels, scalar_like),
    _passes("Gather", along_channels, _gatherable, move=_gather, opsets=("opset1", "opset7", "opset8")),
    _passes(
        "Interpolate",
        along_channels,
        _constant_in_space,
        constant_input(1, "target size"),
        _interpolable,
        opsets=("opset1", "opset4"),
        added=("opset11",),
        preserves_where=_copies,
    ),
    _passes(
        "Pad",
        static_rank,
        constant_input(1, "padding before"),
        constant_input(2, "padding after"),
        _paddable,
        opsets=("opset1", "opset12"),
        move=_pad_with(1.0),
        move_zero_point=_pad_with(0.0),
    ),
    _passes("Reshape", _reshapable, move=_reshape),
    _passes("Roll", static_rank, _rollable, move=_roll, opsets=(), added=("opset7",)),
    Operation("Select", "passes", (), static_rank, data_inputs=(1, 2), **_ADDED),
    _passes("ShuffleChannels", static_rank, move=_shuffle),
    _passes("Slice", _sliced, move=_slice, opsets=("opset8",)),
    _passes("SpaceToBatch", along_channels, per_tensor, _unpadded_or_zero(2, 3), opsets=("opset2",)),
    _passes("Split", static_rank, constant_input(1, "axis")),
    _passes("Tile", static_rank, _tileable, move=_tile, opsets=(), added=("opset1",)),
    _passes("Unsqueeze", along_channels, constant_input(1, "list of axes"), move=_unsqueeze),
    _passes("VariadicSplit", static_rank, constant_input(1, "axis"), constant_input(2, "list of lengths")),
    _passes("Squeeze", along_channels, constant_input(1, "list of axes"), move=_squeeze),
    _passes("StridedSlice", _sliceable, move=_strided_slice),
    _passes("Transpose", _transposable, move=_transpose),
    *_ABSENT,
)

OPERATIONS = LayeredTable({row.name: row for row in _ROWS})
