from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class BroadcastTransformation(MoveDequantizationAfter):
    """Copies commute with a per-tensor dequantization."""

    operation = OPERATIONS["Broadcast"]
