"""What the native library does before its pass, kept with ``native_only``; the class stands for the one of its name."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.canonicalize import boolean_masks


class BooleanMasks(boolean_masks.BooleanMasks):
    """What a boolean mask shows is hidden where the plugin's own decomposition hides it."""

    added: ClassVar = (-np.inf, 0.0)
