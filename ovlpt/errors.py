"""The exceptions of the package.

OvlptError
├── Rejected            a transformation declines a node; carries a Reason (`ovlpt.trace`)
└── InputError          the caller gave something unusable: one sentence, names the culprit and the remedy
"""

from __future__ import annotations


class OvlptError(Exception):
    """Root of the package's exceptions."""


class InputError(OvlptError, ValueError):
    """Unusable input. The message is one sentence that names the culprit and the remedy."""
