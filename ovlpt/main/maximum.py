from ovlpt.main.equal_dequantizations import EqualDequantizationsTransformation
from ovlpt.operations import OPERATIONS


class MaximumTransformation(EqualDequantizationsTransformation):
    """``max(x * s, y * s) == max(x, y) * s`` when ``s >= 0``."""

    operation = OPERATIONS["Maximum"]
