from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class SpaceToBatchTransformation(MoveDequantizationAfter):
    """Data moves from space into the batch; padded cells hold raw zeros."""

    operation = OPERATIONS["SpaceToBatch"]
