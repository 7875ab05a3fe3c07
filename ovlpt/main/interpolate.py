from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class InterpolateTransformation(MoveDequantizationAfter):
    """Nearest neighbours are copies, so the dequantization passes and the output stays in low precision."""

    operation = OPERATIONS["Interpolate"]
