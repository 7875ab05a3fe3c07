"""Flagged runs that are known: (family, quantizer) → the reason."""

EXPECTED: dict[tuple[str, str], str] = {}
