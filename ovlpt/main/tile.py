from ovlpt.layer_transformation import MoveDequantizationAfter
from ovlpt.operations import OPERATIONS


class TileTransformation(MoveDequantizationAfter):
    """Copies of the data; constants are copied along the axes on which they vary."""

    operation = OPERATIONS["Tile"]
