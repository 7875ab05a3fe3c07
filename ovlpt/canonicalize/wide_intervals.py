from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, kept_apart, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation, insert_after, replace_output
from ovlpt.openvino_api import Node, Output, opset1
from ovlpt.operations.families import PASSES_ON
from ovlpt.trace import Reason

LEVELS = 256  # of more a plugin may drop the FakeQuantize, and keep what stands before it
_LARGEST = float(np.finfo(np.float32).max)
_SMALLER = np.float32(2**-16)
_FAR = _LARGEST * (1 - 2**-20)
_OFF_GRID = 1e-3
_HIDES = -1e6  # or less: what is shown would be off by a tenth
_SYMMETRIC = 1.01  # 128 steps, and 127
_SUMS = frozenset(("Add", "ScaledDotProductAttention", "Subtract"))
_SCALES = frozenset(("Multiply", "Subtract"))  # of a dequantization


class WideIntervals(LayerTransformation):
    """``FQ(x)`` of an interval as of a mask of -3.4e38 is that of ``x / 65536``; of such an output, or of a mask that is added,
    it is ``FQ'(x) * step``, where FQ' gives steps. A Maximum stands between, past which no factor is fused.

    Kernels compute ``x * scale + shift``, the shift from a bound times the number of steps, which would be infinite, and so
    no number what follows. Likewise the last level of all numbers of f32: such bounds become a millionth less. They also
    round the shift, and the 0 of a mask of -1e30 would be one of 1e22, beside which all scores are the same. Of a constant it
    is the value.
    """

    quiet = True
    why = Reason("wide_interval", "a bound of its interval times its steps would be infinite, or round its 0")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.FakeQuantize"]

    def concerns(self, node: Node) -> bool:
        data, *ends = node.input_values()
        levels = node.get_attributes()["levels"]
        if levels > LEVELS or precision_of(data) != "f32":
            return False
        low, high, *output = map(constant_above, ends)
        if low is None or high is None:
            return False
        return _is_wide(levels, low, high) or ((_hides(low, high) or _hides(*output)) and _is_added(node))

    def transform(self, node: Node) -> None:
        if (folded := folded_constant(node.output(0))) is not None:
            replace_output(node.output(0), constant(folded, precision_of(node.output(0))).output(0))
            return
        levels = node.get_attributes()["levels"]
        low, high, *output = (constant_above(value) for value in node.input_values()[1:])
        if _is_wide(levels, low, high):
            if all(end is not None for end in output):
                low, high, *output = finite_ends(levels, low, high, *output)
            smaller = opset1.multiply(node.input_value(0), constant(_SMALLER)).output(0)
            node.input(0).replace_source_output(_named(kept_apart(smaller), Made.ALONE, node))
            _set_ends(node, 1, low * _SMALLER, high * _SMALLER)
        if any(end is None for end in output):
            return
        if _is_wide(levels, *output) or _hides(*output):
            _set_ends(node, 3, *(np.clip(end, -_FAR, _FAR) for end in output))
            _scale_after(node, *output)
        else:  # what is stored
            stored = _before_scale(node)
            targets = stored.get_target_inputs()
            insert_after(stored, _named(kept_apart(stored), Made.GUARD, node), targets, [])


def finite_ends(levels: int, low: np.ndarray, high: np.ndarray, *output: np.ndarray) -> tuple[np.ndarray, ...]:
    """The ends in f64. An infinite one that is beyond f32 follows from the other one, as of 128 steps, of which 127 are the
    largest number: 0 is a level, and no more steps are on its side than have to be.
    """
    found: list[np.ndarray] = []
    for one, other in ((low, high), output):
        found += _beyond(levels - 1, one, other), _beyond(levels - 1, other, one)
    return tuple(found)


def _beyond(steps: int, end: np.ndarray, other: np.ndarray) -> np.ndarray:
    end, other = end.astype(np.float64), other.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps_of_other = np.ceil(steps / (1 + _LARGEST / np.abs(other))) - 1
        beyond = -other * (steps - steps_of_other) / steps_of_other
        return np.where(np.isinf(end) & np.isfinite(beyond) & (beyond * end > 0), beyond, end)


def _is_wide(levels: int, *ends: np.ndarray) -> bool:
    return any(max(_largest(end), -_smallest(end)) * (levels - 1) > _LARGEST for end in ends)


def _largest(end: np.ndarray) -> float:
    """Of the numbers; most ends are one, and numpy takes twenty times as long to look for it."""
    return end.item() if end.size == 1 else float(end.max(initial=-np.inf))


def _smallest(end: np.ndarray) -> float:
    return end.item() if end.size == 1 else float(end.min(initial=np.inf))


def _hides(*ends: np.ndarray | None) -> bool:
    """Whether these are of a mask: numbers beside which nothing is left, and 0, or as many beyond it as a symmetric one has."""
    low, high = ends
    if low is None or high is None or _largest(low) > _HIDES:
        return False
    return bool(((high >= 0) & (high <= -low * _SYMMETRIC)).all())


def _is_added(node: Node) -> bool:
    readers, seen = readers_of(node), set()
    while readers:
        reader = readers.pop()
        kind, number = reader.get_type_name(), reader.get_instance_id()
        if number in seen:
            continue
        seen.add(number)
        if kind in _SUMS and constant_above(reader.input_value(1)) is None:
            return True
        if kind in _SCALES or kind in PASSES_ON:
            readers += readers_of(reader)
    return False


def _before_scale(node: Node) -> Output:
    """What was stored, as real numbers: multiplied with its scale, a zero point would be rounded likewise."""
    while len(readers := readers_of(node)) == 1:
        kind = readers[0].get_type_name()
        if kind != "Convert" and (kind != "Subtract" or constant_above(readers[0].input_value(1)) is None):
            break
        node = readers[0]
    return node.output(0)


def _scale_after(node: Node, low: np.ndarray, high: np.ndarray) -> None:
    """Steps, whole numbers where 0 is one of the levels, and their scale."""
    steps = node.get_attributes()["levels"] - 1
    scale = (high.astype(np.float64) - low) / steps
    if not (np.isfinite(scale) & (scale != 0)).all():
        return
    first = low / scale
    first = np.where(np.abs(first - np.rint(first)) <= _OFF_GRID, np.rint(first), first)
    targets = node.output(0).get_target_inputs()
    _set_ends(node, 3, first, first + steps)
    levels = _named(kept_apart(node.output(0)), Made.GUARD, node)
    scaled = _named(opset1.multiply(levels, constant(scale)), Made.SCALE, node)
    insert_after(node.output(0), scaled, targets, [scaled.get_node()])


def _set_ends(node: Node, port: int, *ends: np.ndarray) -> None:
    for place, end in enumerate(ends, port):
        node.input(place).replace_source_output(constant(end, precision_of(node.input_value(place))).output(0))


def _named(node: Node, made: Made, of: Node) -> Output:
    node.set_friendly_name(made_for(of.get_friendly_name(), made))
    return node.output(0)
