from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class UnsqueezeTransformation(MoveDequantizationAfter):
    """Constants get the same new axes as the data."""

    operation = OPERATIONS["Unsqueeze"]
