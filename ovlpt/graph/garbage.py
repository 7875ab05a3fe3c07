"""Python's garbage collection, put off while a model is transformed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles meanwhile, unless it was off before: a transformation makes none, but enough objects to start
    one, which goes through all that the process holds, and takes as long as a tenth of a network's transformation.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
