"""Tasks, and what a worker does with one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ovlpt.fleet.machine import machine, name
from ovlpt.fleet.parcel import MissingError, Parcel


@dataclass(frozen=True)
class Task:
    """One call, ``function(*arguments)``, and its ``label`` in sentences.

    ``key`` names it in a journal: a digest of all that its answer depends on, no two alike in a run. For a worker the
    function is found by its name, and arguments can be pickled; a `Parcel` in them, or in their dataclasses and tuples,
    stands for files. The answer is plain values, as JSON has them.
    """

    key: str
    label: str
    function: Callable[..., object]
    arguments: tuple[object, ...] = ()

    def packed(self, by_content: bool) -> Task:
        """With the content of its parcels: of those by content, or of the others."""
        return replace(self, arguments=_packed(self.arguments, by_content))


def _packed(value: Any, by_content: bool) -> Any:
    if isinstance(value, Parcel):
        return value.packed() if value.by_content == by_content else value
    if isinstance(value, tuple):
        return tuple(_packed(each, by_content) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
        changed = {name: new for name, old in held.items() if (new := _packed(old, by_content)) is not old}
        return replace(value, **changed) if changed else value
    return value


@dataclass(frozen=True)
class Answer:
    """What a worker sends back. ``missing``: it lacks a parcel, by content or not, and there is no value."""

    worker: str
    machine: dict[str, str]
    seconds: float
    value: object = None
    missing: bool | None = None


def perform(function: Callable[..., object], arguments: tuple[object, ...]) -> Answer:
    """Carry out a task, in the worker."""
    begin = time.perf_counter()
    try:
        value, missing = function(*arguments), None
    except MissingError as error:
        value, missing = None, error.by_content
    return Answer(name(), machine(), time.perf_counter() - begin, value, missing)
