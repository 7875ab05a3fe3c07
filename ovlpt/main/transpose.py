from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class TransposeTransformation(MoveDequantizationAfter):
    """Constants are transposed with the data."""

    operation = OPERATIONS["Transpose"]
