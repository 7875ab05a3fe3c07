"""Flagged runs that are known: (family, quantizer) → the reason."""

EXPECTED: dict[tuple[str, str], str] = {
    ("torch/lstm_both", "default"): "the grid of an open state is a layer; without it stock clips the state",
    ("timm/efficientvit_b0", "default"): (
        "stock computes garbage in as many layers: its products of two tensors read a scale by column from beyond its array, "
        "and with an open batch it takes a scale into a convolution whose integers a FakeQuantize reads, too"
    ),
}
