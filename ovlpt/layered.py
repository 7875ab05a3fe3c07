"""A table over which a caller's entries lie for the time of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class LayeredTable(Mapping[str, T]):
    """Read like the mapping it is made of. `over` lays further entries on it, which hide those of the same name: in this
    thread, or asyncio task, only.
    """

    def __init__(self, entries: Mapping[str, T]):
        self._entries = dict(entries)
        self._over: ContextVar[Mapping[str, T]] = ContextVar("entries over a table", default={})  # noqa: B039  # never written to

    @contextmanager
    def over(self, entries: Mapping[str, T]) -> Iterator[None]:
        token = self._over.set({**self._over.get(), **entries})
        try:
            yield
        finally:
            self._over.reset(token)

    def __getitem__(self, name: str) -> T:
        over = self._over.get()
        return over[name] if name in over else self._entries[name]

    def get(self, name: str, default: T | None = None) -> T | None:  # type: ignore[override]  # no overloads
        """Without an exception for what is not there, which most names of a graph are not."""
        over = self._over.get()
        return over[name] if name in over else self._entries.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._entries, **self._over.get()})

    def __len__(self) -> int:
        return len({**self._entries, **self._over.get()})
