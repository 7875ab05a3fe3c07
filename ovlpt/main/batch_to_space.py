from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class BatchToSpaceTransformation(MoveDequantizationAfter):
    """Data moves from the batch into space; a per-tensor dequantization passes."""

    operation = OPERATIONS["BatchToSpace"]
