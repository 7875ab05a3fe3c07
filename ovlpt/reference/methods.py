"""Whose arithmetic: the values of every ``method`` argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ovlpt.choices import METHODS as METHODS
from ovlpt.choices import RUNTIMES as RUNTIMES
from ovlpt.trace import InputError

T = TypeVar("T")

ALIASES = {"tflite": "tflite-xnnpack"}
TFLITE = ("tflite-reference", "tflite-optimized", "tflite-2.5", "tflite-xnnpack")
TORCH = ("torch-qnnpack", "torch-fbgemm", "torch-x86", "torch-onednn")


def resolve(method: str) -> str:
    """The full name of a method. Raises `InputError` for a name that does not exist."""
    method = ALIASES.get(method, method)
    if method not in METHODS:
        raise InputError(f"The method {method!r} is unknown: use one of {', '.join([*ALIASES, *METHODS])}.")
    return method


def cell(operator: str, cells: Mapping[str, T], method: str) -> T:
    """The entry of a method in an operator's row of the table; an empty cell raises `InputError`."""
    name = resolve(method)
    if name not in cells:
        raise InputError(
            f"{METHODS[name]} has no such quantized operator: {operator}; use one of the methods {', '.join(cells)}."
        )
    return cells[name]
