"""The execution graph as a drawing: boxes in layers, coloured by precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ovlpt.inspect.report.layers import Layer

WIDTH, HEIGHT = 148, 36  # of a box
_BETWEEN, _BELOW = 20, 30  # boxes side by side, and one above the other
_MARGIN = 14


@dataclass(frozen=True, slots=True)
class Box:
    """Upper left corner."""

    layer: Layer
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """``path``: in SVG's own words."""

    source: int
    target: int
    path: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(layers: Sequence[Layer]) -> Picture:
    """Places for all layers."""
    edges = sorted({(source, layer.index) for layer in layers for source in layer.inputs})
    centers, routes = _placed([layer.index for layer in layers], edges)
    boxes = tuple(
        Box(layer, centers[layer.index][0] - WIDTH / 2, centers[layer.index][1] - HEIGHT / 2) for layer in layers
    )
    arrows = tuple(Arrow(source, target, _path(points)) for (source, target), points in routes.items())
    width = max((box.x for box in boxes), default=0.0) + WIDTH + _MARGIN
    height = max((box.y for box in boxes), default=0.0) + HEIGHT + _MARGIN
    return Picture(width, height, boxes, arrows)


Point = tuple[float, float]
Edge = tuple[int, int]


def _placed(nodes: Sequence[int], edges: Sequence[Edge]) -> tuple[dict[int, Point], dict[Edge, list[Point]]]:
    """The centers of nodes, and the points that each edge passes; what hangs together stands side by side."""
    from fast_sugiyama import from_edges

    parts: list[Any] = from_edges(edges, vertex_spacing=10, dummy_vertices=True, dummy_size=0.2) if edges else []
    connected = {node for edge in edges for node in edge}
    alone: list[Any] = [([(node, (0.0, 0.0))], 0.0, 0.0, []) for node in nodes if node not in connected]
    centers: dict[int, Point] = {}
    routes: dict[Edge, list[Point]] = {}
    left = float(_MARGIN)
    for positions, _, _, pieces in (*parts, *alone):
        part = _scaled(dict(positions), set(nodes), left)
        left = max(x for x, _ in part.values()) + WIDTH / 2 + 2 * _BETWEEN
        centers |= {node: point for node, point in part.items() if node in connected or not pieces}
        follower = {start: end for start, end in pieces if start not in connected}  # of the points without a node
        for start, end in pieces:
            if start in connected:
                passed = [start, end]
                while passed[-1] in follower:
                    passed.append(follower[passed[-1]])
                routes[start, passed[-1]] = [part[point] for point in passed]
    return centers, routes


def _scaled(positions: dict[int, Point], nodes: set[int], left: float) -> dict[int, Point]:
    """Boxes as near to each other as they can be, the first row on top."""
    rows = {y: row for row, y in enumerate(sorted({y for _, y in positions.values()}, reverse=True))}
    across: dict[float, list[tuple[float, bool]]] = {}
    for node, (x, y) in positions.items():
        across.setdefault(y, []).append((x, node in nodes))
    needed = [
        (WIDTH / 2 * (is_box + next_is_box) + _BETWEEN) / (next_x - x)
        for row in map(sorted, across.values())
        for (x, is_box), (next_x, next_is_box) in pairwise(row)
        if next_x > x
    ]
    scale = max(needed, default=1.0)
    first = min(x for x, _ in positions.values())
    return {
        node: (left + WIDTH / 2 + (x - first) * scale, _MARGIN + HEIGHT / 2 + rows[y] * (HEIGHT + _BELOW))
        for node, (x, y) in positions.items()
    }


def _path(points: Sequence[Point]) -> str:
    """From below the first box to above the last, upright at every point."""
    (x, y), *inner, (last_x, last_y) = points
    points = [(x, y + HEIGHT / 2), *inner, (last_x, last_y - HEIGHT / 2)]
    path = [f"M{points[0][0]:.0f} {points[0][1]:.0f}"]
    for (x, y), (next_x, next_y) in pairwise(points):
        middle = (y + next_y) / 2
        path.append(
            f"V{next_y:.0f}"
            if x == next_x
            else f"C{x:.0f} {middle:.0f} {next_x:.0f} {middle:.0f} {next_x:.0f} {next_y:.0f}"
        )
    return "".join(path)
