from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class StridedSliceTransformation(MoveDequantizationAfter):
    """Constants are sliced with the data along the axes on which they vary."""

    operation = OPERATIONS["StridedSlice"]
