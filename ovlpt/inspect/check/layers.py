"""Executed layers, as far as they are compared, and how those of one model differ from those of another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ovlpt.device import LayerExecution
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.graph.names import without_added

_FLOATS = ("f32", "f16", "bf16")


class Kind(StrEnum):
    """How a layer differs from what is expected."""

    LOST = "lost"  # int8 is wanted, and it runs in float
    MISSING = "missing"  # int8 is wanted, and no layer holds the operations
    CHANGED = "changed"  # another precision
    GAINED = "gained"  # float is wanted, and it runs in int8: never a failure
    KEPT = "kept"  # the plugin runs it in int8, wrongly, and ovlpt in float for that reason: no failure, either


HARMLESS = (Kind.GAINED, Kind.KEPT)


@dataclass(frozen=True, slots=True)
class LayerPrecision:
    """One executed layer, as far as it is compared."""

    name: str
    layer_type: str
    precision: str  # u8, i8 (only where the kernel is one too), f32, f16, bf16; "int8" where counters tell no more
    exec_type: str
    operations: tuple[str, ...]  # names of the model's operations that the layer holds

    @classmethod
    def of(cls, layer: LayerExecution, operations: Collection[str]) -> LayerPrecision:
        """``operations``: the names in the model; empty where there is no model."""
        names = dict.fromkeys(without_added(name) for name in (layer.name, *layer.original_names))
        held = tuple(name for name in names if not operations or name in operations)
        return cls(layer.name, layer.layer_type, executed_precision(layer), layer.exec_type, held)

    @property
    def is_low(self) -> bool:
        return self.precision in ("u8", "i8", "int8")


def executed_precision(layer: LayerExecution) -> str:
    """What a layer computes in, by its kernel's name first."""
    if layer.is_int8 and layer.precision in ("u8", "i8", ""):
        return layer.precision or "int8"
    kernel = layer.exec_type.lower().rsplit("_", 1)[-1]
    return next((each for each in (kernel, layer.precision) if each in _FLOATS), "unknown")


@dataclass(frozen=True, slots=True)
class Difference:
    """A layer that does not run as expected."""

    kind: Kind
    layer: str
    layer_type: str
    wanted: str  # precision
    found: str  # precision; "" where no layer was found
    exec_type: str
    setting: str = "f32"  # what floats were computed in

    @property
    def fails(self) -> bool:
        return self.kind not in HARMLESS


def compare(wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]) -> Iterator[Difference]:
    """The layers of ``found`` that run in a different precision from the same layers of ``wanted``.

    u8 and i8 are one precision here. A float layer that has no counterpart is not a difference: fusions move.
    """
    for layer, partner in pair(wanted, found):
        if partner is None:
            if layer.is_low:
                yield Difference(Kind.MISSING, layer.name, layer.layer_type, layer.precision, "", "")
        elif layer.is_low != partner.is_low or (not layer.is_low and layer.precision != partner.precision):
            kind = Kind.LOST if layer.is_low else Kind.GAINED if partner.is_low else Kind.CHANGED
            yield difference(kind, layer.precision, partner)


def pair(
    wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]
) -> list[tuple[LayerPrecision, LayerPrecision | None]]:
    """Each wanted layer with the found one that shares most operations with it; what is left over, by its order.

    The order is that of layers of one type, then of all weighted ones: a MatMul may run as a convolution. Where there are
    more of one than of the other, only what runs in int8 in both is paired: any of these stands for any.
    """
    partners: dict[int, LayerPrecision] = {}
    free = dict(enumerate(found))
    for _, _, at, other in sorted(
        _shared(wanted, found), key=lambda each: (*each[:2], -each[2], -each[3]), reverse=True
    ):
        if at not in partners and other in free:
            partners[at] = free.pop(other)
    kinds = {layer.layer_type for layer in wanted}
    for types in (*({kind} for kind in kinds), WEIGHTED_LAYERS):
        left = [at for at, layer in enumerate(wanted) if at not in partners and layer.layer_type in types]
        rest = [at for at, layer in free.items() if layer.layer_type in types]
        if len(left) == len(rest) or all(
            layer.is_low for layer in (*(wanted[at] for at in left), *map(free.get, rest))
        ):
            partners.update((at, free.pop(other)) for at, other in zip(left, rest, strict=False))
    return [(layer, partners.get(at)) for at, layer in enumerate(wanted)]


def _shared(wanted: Sequence[LayerPrecision], found: Sequence[LayerPrecision]) -> Iterator[tuple[bool, int, int, int]]:
    """Layers with common operations: whether they are of one type, how many operations, and both their places."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, layer in enumerate(found):
        for name in layer.operations:
            holders[name].append(at)
    for at, layer in enumerate(wanted):
        for other, count in Counter(other for name in layer.operations for other in holders[name]).items():
            yield found[other].layer_type == layer.layer_type, count, at, other


def difference(kind: Kind, wanted: str, layer: LayerPrecision) -> Difference:
    return Difference(kind, layer.name, layer.layer_type, wanted, layer.precision, layer.exec_type)
