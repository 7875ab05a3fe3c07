from ovlpt.main.equal_dequantizations import EqualDequantizationsTransformation
from ovlpt.operations import OPERATIONS


class MinimumTransformation(EqualDequantizationsTransformation):
    """``min(x * s, y * s) == min(x, y) * s`` when ``s >= 0``."""

    operation = OPERATIONS["Minimum"]
