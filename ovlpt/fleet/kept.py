"""What a worker makes once and uses for many tasks: networks that are compiled, for instance."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Made = TypeVar("Made")


class Kept:
    """The last ``most`` things by their keys. A thread has one for itself: a request computes for one at a time."""

    def __init__(self, most: int):
        self._most = most
        self._lock = threading.Lock()
        self._things: OrderedDict[Hashable, tuple[threading.Lock, list]] = OrderedDict()

    @contextmanager
    def lend(self, key: Hashable, make: Callable[[], Made]) -> Iterator[Made]:
        """The thing of ``key``, which ``make`` makes where it is not there."""
        with self._lock:
            lock, made = self._things.setdefault(key, (threading.Lock(), []))
            self._things.move_to_end(key)
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        with lock:
            if not made:
                made.append(make())
            yield made[0]
