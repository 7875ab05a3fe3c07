from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ReduceMeanTransformation(MoveDequantizationAfter):
    """The mean is linear, so the dequantization passes unless it differs along a reduced axis; the result is real."""

    operation = OPERATIONS["ReduceMean"]
