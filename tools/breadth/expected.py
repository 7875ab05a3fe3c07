"""Flagged runs that are known: (family, quantizer) → the reason."""

EXPECTED: dict[tuple[str, str], str] = {
    ("torch/lstm_both", "default"): "the grid of a dynamic state is an extra layer; without it stock clips the state",
    ("timm/efficientvit_b0", "default"): (
        "stock computes garbage in as many layers: its MatMuls of two tensors read a per-column scale from beyond its array, "
        "and with a dynamic batch it fuses a scale into a convolution whose integers a FakeQuantize also reads"
    ),
}
