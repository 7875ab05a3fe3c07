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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ovlpt.trace import Reason

Shape = tuple[int | None, ...]  # None: a dynamic dimension
Kind = Literal["passes", "elementwise", "reduces", "weighted", "absent"]


@dataclass(frozen=True)
class Site:
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

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def values(self) -> tuple[np.ndarray, ...]:
        return (self.scale,) if self.zero_point is None else (self.zero_point, self.scale)


Check = Callable[[Site], Reason | None]
Move = Callable[[np.ndarray, Site], np.ndarray]


def keep(values: np.ndarray, _: Site) -> np.ndarray:
    return values


def _scalar_like(values: np.ndarray) -> bool:
    return values.size == 1 or bool((values == values.flat[0]).all())


def _aligned(values: np.ndarray, rank: int) -> np.ndarray:
    """The constant with leading ones up to ``rank``."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape) if values.ndim < rank else values


# Checks: None, or the reason against


def static_rank(site: Site) -> Reason | None:
    if site.output_shape is None or site.shape is None:
        return Reason("dynamic_rank", "the rank is not known")
    return None


def along_channels(site: Site) -> Reason | None:
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
                "not_per_channel", f"the dequantization has the shape {list(values.shape)} and varies off the channel axis"
            )
    return None


def no_zero_point(site: Site) -> Reason | None:
    if site.zero_point is not None:
        return Reason("zero_point", f"the data has a zero point ({site.zero_point.flat[0]:g}) and zero must stay zero")
    return None


def positive_scale(site: Site) -> Reason | None:
    if (site.scale < 0).any():
        return Reason("negative_scale", f"a scale is negative ({site.scale.min():g}) and the order of values would turn")
    return None


def scalar_like(site: Site) -> Reason | None:
    if not all(_scalar_like(values) for values in site.values):
        return Reason("per_channel", "the scale or zero point differs between channels")
    return None


def all_of(*checks: Check) -> Check:
    def check(site: Site) -> Reason | None:
        return next((reason for each in checks if (reason := each(site))), None)

    return check


def _axes(site: Site, port: int = 1) -> list[int] | None:
    axes = site.constants[port] if port < len(site.constants) else None
    return None if axes is None else [int(axis) % site.rank for axis in np.ravel(axes)]


def constant_input(port: int, what: str) -> Check:
    def check(site: Site) -> Reason | None:
        if port >= len(site.constants) or site.constants[port] is None:
            return Reason("not_constant", f"the {what} is not a constant")
        return None

    return check


def _scales_not_reduced(site: Site) -> Reason | None:
    axes = _axes(site)
    for values in site.values:
        aligned = _aligned(values, site.rank)
        if values.size > 1 and any(aligned.shape[axis] != 1 for axis in axes):
            return Reason("reduced_scale", f"the scale differs along axis {axes}, and that axis is reduced")
    return None


def _known_reduced_size(site: Site) -> Reason | None:
    if site.zero_point is not None and any(site.shape[axis] is None for axis in _axes(site)):
        return Reason("dynamic_shape", "the zero point is summed over an axis of unknown size")
    return None


def _normalized_axes(site: Site) -> Reason | None:
    """The scale is constant over what is normalized."""
    if len(site.constants) > 1:
        if site.constants[1] is None:
            return Reason("not_constant", "the list of axes is not a constant")
        axes = _axes(site)
    else:
        axes = site.attributes.get("reduction_axes") or range(1 if site.attributes.get("across_channels") else 2, site.rank)
    if 1 not in axes:
        return None
    if any(axis not in axes for axis in range(2, site.rank)):
        return Reason("normalized_axes", f"it normalizes over axes {sorted(axes)}, which hold the channels but not all that follows")
    return scalar_like(site)


# Moves: the constant after from the constant before


def _reduce(values: np.ndarray, site: Site) -> np.ndarray:
    if values.size == 1 or site.attributes.get("keep_dims"):
        return values
    return np.squeeze(_aligned(values, site.rank), tuple(_axes(site)))


def _transposable(site: Site) -> Reason | None:
    if all(_scalar_like(values) for values in site.values):
        return None
    order = site.constants[1]
    if list(order[:2]) != [0, 1]:
        return Reason("channel_moves", f"the order {order.tolist()} moves the channel axis of a scale per channel")
    for values in site.values:
        if values.ndim not in (0, 1, site.rank, site.rank - 1) and values.size > 1:
            return Reason("constant_rank", f"a dequantization of rank {values.ndim} has no axis for each of {site.rank}")
    return None


def _transpose(values: np.ndarray, site: Site) -> np.ndarray:
    if values.ndim <= 1:
        return values
    return np.transpose(_aligned(values, site.rank), np.ravel(site.constants[1]))


def _reshapable(site: Site) -> Reason | None:
    per_tensor = all(_scalar_like(values) for values in site.values)
    if per_tensor and not (site.strict and site.only_consumer == "MatMul"):
        return None
    before, after = site.shape, site.output_shape
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
    first = next((axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    if (last == 1 and first == 1) or last < first:
        return None
    return Reason("channels_merge", f"the scale differs along axis {last}, which the reshape to {_show(after)} takes apart")


def _show(shape: Shape) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def _reshape(values: np.ndarray, site: Site) -> np.ndarray:
    if _scalar_like(values):
        return values.reshape(-1)[0].reshape(())
    channels = site.output_shape[1]
    repeated = np.repeat(values.reshape(-1), channels // values.size)
    return repeated.reshape(1, channels, *(1 for _ in site.output_shape[2:]))


@dataclass(frozen=True)
class Operation:
    """One row."""

    name: str
    kind: Kind
    opsets: tuple[str, ...] = ("opset1",)
    check: Check = along_channels
    move: Move = keep
    precision_preserved: bool = False
    data_inputs: tuple[int, ...] | None = (0,)  # ports a restriction may name; None: any number (Concat)
    weights_axes: tuple[int, ...] = ()  # output channels of the weights
    why_absent: Reason | None = None

    @property
    def type_names(self) -> list[str]:
        """As `WrapType` wants them: "opset1.MaxPool"."""
        return [f"{opset}.{self.name}" for opset in self.opsets]


def _passes(name: str, *checks: Check, move: Move = keep, opsets: Sequence[str] = ("opset1",), **more) -> Operation:
    check = all_of(*checks) if checks else along_channels
    return Operation(name, "passes", tuple(opsets), check, move, precision_preserved=True, **more)


def _reduces(name: str, *checks: Check, **more) -> Operation:
    check = all_of(static_rank, constant_input(1, "list of axes"), _scales_not_reduced, *checks)
    return Operation(name, "reduces", check=check, move=_reduce, **more)


def _absent(name: str, text: str, opsets: Sequence[str] = ("opset1",)) -> Operation:
    return Operation(name, "absent", tuple(opsets), why_absent=Reason("no_rule", text))


_NONLINEAR = "{} is not linear, so a scale cannot pass it"

_ROWS = (
    # weighted
    Operation("Convolution", "weighted", data_inputs=(0, 1), weights_axes=(0,)),
    Operation("GroupConvolution", "weighted", data_inputs=(0, 1), weights_axes=(0, 1)),
    Operation("ConvolutionBackpropData", "weighted", data_inputs=(0, 1), weights_axes=(1,)),
    Operation("MatMul", "weighted", check=static_rank, data_inputs=(0, 1)),
    # elementwise
    Operation("Add", "elementwise", data_inputs=(0, 1)),
    Operation("Multiply", "elementwise", data_inputs=(0, 1)),
    Operation("Clamp", "elementwise", check=all_of(along_channels, scalar_like)),
    Operation("FakeQuantize", "elementwise", check=static_rank),
    Operation("Relu", "elementwise", check=all_of(along_channels, no_zero_point, positive_scale), precision_preserved=True),
    # reduces
    Operation("AvgPool", "reduces"),
    Operation("MaxPool", "reduces", check=all_of(along_channels, positive_scale), precision_preserved=True),
    Operation("MVN", "reduces", ("opset2", "opset6"), check=all_of(along_channels, no_zero_point, _normalized_axes)),
    _reduces("ReduceMean"),
    # passes
    Operation("Concat", "passes", check=static_rank, precision_preserved=True, data_inputs=None),
    _passes("Reshape", along_channels, _reshapable, move=_reshape),
    _passes("Split", static_rank, constant_input(1, "axis")),
    _passes("VariadicSplit", static_rank, constant_input(1, "axis"), constant_input(2, "list of lengths")),
    _passes("Transpose", static_rank, constant_input(1, "order"), _transposable, move=_transpose),
)

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}
