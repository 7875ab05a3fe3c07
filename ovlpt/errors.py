"""The exceptions of the package, and its warnings.

OvlptError
├── Rejected            a transformation declines a node; carries a Reason (`ovlpt.trace`)
└── InputError          the caller gave something unusable: one sentence, names the culprit and the remedy
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

_PACKAGE = Path(__file__).parent


class OvlptError(Exception):
    """Root of the package's exceptions."""


class InputError(OvlptError, ValueError):
    """Unusable input. The message is one sentence that names the culprit and the remedy."""


def warn(sentence: str) -> None:
    """A ``UserWarning`` at the line of the caller's that called the package."""
    level, frame = 1, inspect.currentframe()
    while frame and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, stacklevel=level)
