from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class SliceTransformation(MoveDequantizationAfter):
    """A part of the data keeps a per-tensor dequantization."""

    operation = OPERATIONS["Slice"]
