from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReshapeTransformation(MoveDequantizationAfter):
    """Per-tensor constants become scalars; constants per channel follow the channel axis."""

    operation = OPERATIONS["Reshape"]
