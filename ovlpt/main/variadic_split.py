from ovlpt.main.split import SplitTransformation
from ovlpt.operations import OPERATIONS


class VariadicSplitTransformation(SplitTransformation):
    """As Split, with parts of different lengths."""

    operation = OPERATIONS["VariadicSplit"]
