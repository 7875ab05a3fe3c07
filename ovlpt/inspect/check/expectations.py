"""What is asked: precisions by operation."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ovlpt.choices import EXPECTABLE
from ovlpt.device.layer_types import COMPUTED_BY
from ovlpt.inspect.check.execution import WEIGHTED, Executed
from ovlpt.inspect.check.layers import Difference, Kind, LayerPrecision, difference
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import INT8
from ovlpt.trace import InputError


def compare_expected(
    wanted: Mapping[str, str], found: Sequence[LayerPrecision], executed: Executed
) -> tuple[list[LayerPrecision], list[Difference]]:
    compared, differences = [], []
    for operation, precision in wanted.items():
        holders = [layer for layer in found if _holds(layer, operation, executed.operations)]
        if not holders:
            raise InputError(f"no executed layer holds a {operation}, so nothing can be expected of one")
        is_int8 = precision in ("int8", *INT8)
        for layer in holders:
            inside = [name for name in layer.operations if name in executed.float_inside]
            if is_int8 and any(executed.operations[name] == operation for name in inside):
                layer = replace(layer, precision="float")  # the kernel is of int8, as another operation inside
                differences.append(difference(Kind.LOST, precision, layer))
            elif layer.precision != precision and layer.precision not in EXPECTABLE[precision]:
                kind = Kind.LOST if is_int8 and not layer.is_low else Kind.CHANGED
                differences.append(difference(kind, precision, layer))
            compared.append(layer)
    return compared, differences


def _holds(layer: LayerPrecision, operation: str, operations: Mapping[str, str]) -> bool:
    """By the model's operations where the layer's names are known, else by the layer's type."""
    types = {operations[name] for name in layer.operations if name in operations}
    if operation in WEIGHTED and layer.layer_type in COMPUTED_BY[operation]:
        return operation in types or not types & WEIGHTED
    return operation in types or layer.layer_type in (operation, *COMPUTED_BY.get(operation, ()))


def expectations(texts: str | Sequence[str]) -> dict[str, str]:
    """Precision by operation, from ``"int8:Convolution,MatMul"``."""
    wanted = {}
    for text in [texts] if isinstance(texts, str) else texts:
        precision, colon, names = text.partition(":")
        if not colon or precision.strip() not in EXPECTABLE:
            raise InputError(
                f'cannot read the expectation "{text}"; write one of {", ".join(EXPECTABLE)}, '
                "a colon and operations: int8:Convolution,MatMul"
            )
        for name in filter(None, map(str.strip, names.split(","))):
            if name not in OPERATIONS:
                raise InputError(f'no operation "{name}" in the expectation "{text}"{_close_to(name)}')
            wanted[name] = precision.strip()
    if not wanted:
        raise InputError("the expectation names no operation: write int8:Convolution,MatMul")
    return wanted


def _close_to(name: str) -> str:
    known = {each.lower(): each for each in (*sorted(WEIGHTED), *OPERATIONS)}
    begun = [
        each for each in known if each.startswith(name.lower())
    ]  # Conv is short for Convolution, and close to Convert
    found = next((known[each] for each in begun or difflib.get_close_matches(name.lower(), known, 1)), None)
    return f"; did you mean {found}?" if found else "; docs/operations.md lists their names"
