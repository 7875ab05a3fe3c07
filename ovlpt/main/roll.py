from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class RollTransformation(MoveDequantizationAfter):
    """Constants are rolled with the data."""

    operation = OPERATIONS["Roll"]
