"""What is flagged, and known."""

from __future__ import annotations

from typing import Any

from tools.breadth.plan import DEFAULT, flags

# family, quantizer → what may be worse than stock ("layers", "int8", "SQNR", "failure"), and why
EXPECTED: dict[tuple[str, str], dict[str, str]] = {
    ("torch/lstm_both", DEFAULT): {
        "layers": "the grid of a dynamic state is an extra layer; without it stock clips the state"
    },
    ("timm/efficientvit_b0", DEFAULT): {
        "layers": (
            "stock computes garbage in as many layers: its MatMuls of two tensors read a per-column scale from beyond its "
            "array, and with a dynamic batch it fuses a scale into a convolution whose integers a FakeQuantize also reads"
        )
    },
}


def unexpected(line: dict[str, Any]) -> list[str]:
    """The flags of a line for which no reason is known."""
    known = EXPECTED.get((line["family"], line["quantizer"]), {})
    return [flag for flag in flags(line) if flag.split()[-1] not in known]


def reasons(line: dict[str, Any], way: str = "") -> list[str]:
    """Why a line has its flags (those of one ``way``), as far as that is known."""
    known = EXPECTED.get((line["family"], line["quantizer"]), {})
    found = (flag.split()[-1] for flag in flags(line) if flag.startswith(way))
    return list(dict.fromkeys(known[what] for what in found if what in known))
