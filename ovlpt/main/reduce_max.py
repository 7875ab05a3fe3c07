from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReduceMaxTransformation(MoveDequantizationAfter):
    """``max(x * s) == max(x) * s`` when ``s >= 0`` and s does not differ along a reduced axis."""

    operation = OPERATIONS["ReduceMax"]
