from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class MaxPoolTransformation(MoveDequantizationAfter):
    """``max(x * s) == max(x) * s`` when ``s >= 0``."""

    operation = OPERATIONS["MaxPool"]
