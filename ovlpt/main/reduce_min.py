from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReduceMinTransformation(MoveDequantizationAfter):
    """``min(x * s) == min(x) * s`` when ``s >= 0`` and s does not differ along a reduced axis."""

    operation = OPERATIONS["ReduceMin"]
