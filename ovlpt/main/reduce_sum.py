from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReduceSumTransformation(MoveDequantizationAfter):
    """``sum((x - z) * s) == (sum(x) - n * z) * s`` over n elements; the result is real."""

    operation = OPERATIONS["ReduceSum"]
