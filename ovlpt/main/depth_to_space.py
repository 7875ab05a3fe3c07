from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class DepthToSpaceTransformation(MoveDequantizationAfter):
    """Channels move into space; a dequantization that is equal for all of them passes."""

    operation = OPERATIONS["DepthToSpace"]
