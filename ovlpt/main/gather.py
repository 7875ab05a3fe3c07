from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class GatherTransformation(MoveDequantizationAfter):
    """Constants along the gathered axis are gathered with the data."""

    operation = OPERATIONS["Gather"]
