from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class ShuffleChannelsTransformation(MoveDequantizationAfter):
    """Constants along the shuffled axis are shuffled with the data."""

    operation = OPERATIONS["ShuffleChannels"]
