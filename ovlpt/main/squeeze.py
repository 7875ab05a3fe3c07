from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class SqueezeTransformation(MoveDequantizationAfter):
    """Constants lose the same axes as the data."""

    operation = OPERATIONS["Squeeze"]
