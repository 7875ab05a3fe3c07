from ovlpt.main.equal_dequantizations import EqualDequantizationsTransformation
from ovlpt.operations import OPERATIONS


class SelectTransformation(EqualDequantizationsTransformation):
    """Each value is one of the two inputs', both dequantized in the same way; the condition stays as it is."""

    operation = OPERATIONS["Select"]
