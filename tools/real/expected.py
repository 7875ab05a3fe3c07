"""Where ovlpt may be worse than stock, and why: (network, variant) → {miss: reason}.

A miss is one of "metric", "SQNR", "int8" and "layers" (`tools.real.measure`); what is not named here fails.
"""

EXPECTED: dict[tuple[str, str], dict[str, str]] = {}
