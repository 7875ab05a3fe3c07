from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReluTransformation(MoveDequantizationAfter):
    """``relu(x * s) == relu(x) * s`` when ``s >= 0``; a zero point would move the kink."""

    operation = OPERATIONS["Relu"]
