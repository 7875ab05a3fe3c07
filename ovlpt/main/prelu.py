from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class PReluTransformation(MoveDequantizationAfter):
    """``prelu(x * s) == prelu(x) * s`` when ``s >= 0``; the slope makes the output real."""

    operation = OPERATIONS["PRelu"]
