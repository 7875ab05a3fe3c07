"""What changing between int8 and float costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ovlpt.inspect.report.layers import Kind, Layer


@dataclass(frozen=True, slots=True)
class Border:
    """Layers of one sort at the borders: how many, and their milliseconds."""

    sort: str
    meaning: str
    layers: tuple[int, ...]
    milliseconds: float
    time_share: float

    def to_json(self) -> dict[str, object]:
        return {field: getattr(self, field) for field in self.__slots__}


def borders(layers: Sequence[Layer]) -> list[Border]:
    """Reorders, layers that only quantize or dequantize, and islands of float inside int8."""
    executed = [layer for layer in layers if layer.executed]
    total = sum(layer.milliseconds for layer in executed) or 1.0
    reorders = [layer for layer in executed if layer.type == "Reorder"]
    converts = [layer for layer in executed if layer.kind is Kind.BORDER and layer.type != "Reorder"]
    islands = float_islands(layers)
    inside = [layer for island in islands for layer in island if layer.kind is Kind.FLOAT]
    sorts = (
        ("Reorder", "copies a tensor into another layout or element type; those in int8 count too", reorders),
        ("FakeQuantize and Convert", "quantizes or dequantizes, and computes nothing else", converts),
        (f"float islands ({len(islands)})", "runs in float between int8 layers, with a border on each side", inside),
    )
    found = []
    for sort, meaning, members in sorts:
        spent = sum(layer.milliseconds for layer in members)
        found.append(Border(sort, meaning, tuple(layer.index for layer in members), spent, spent / total))
    return found


def float_islands(layers: Sequence[Layer]) -> list[list[Layer]]:
    """Connected layers outside int8 that read an int8 layer's result and are read by one; the slowest first."""
    readers: list[list[int]] = [[] for _ in layers]
    for layer in layers:
        for source in layer.inputs:
            readers[source].append(layer.index)
    inside = [layer.kind in (Kind.FLOAT, Kind.BORDER, Kind.MOVEMENT) and not layer.is_low for layer in layers]
    seen: set[int] = set()
    islands = []
    for start in layers:
        if not inside[start.index] or start.index in seen or start.kind is not Kind.FLOAT:
            continue
        pending, members, enters, leaves = [start.index], [], False, False
        seen.add(start.index)
        while pending:
            at = pending.pop()
            members.append(layers[at])
            enters |= any(layers[source].is_low for source in layers[at].inputs)
            leaves |= any(layers[reader].is_low for reader in readers[at])
            for near in (*layers[at].inputs, *readers[at]):
                if inside[near] and near not in seen:
                    seen.add(near)
                    pending.append(near)
        if enters and leaves:
            islands.append(members)
    return sorted(islands, key=lambda island: -sum(layer.milliseconds for layer in island))
