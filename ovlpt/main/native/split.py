"""Split and VariadicSplit."""

from __future__ import annotations

from ovlpt.main import split, variadic_split
from ovlpt.main.native.constant_second import ConstantSecond


class SplitTransformation(ConstantSecond, split.SplitTransformation):
    pass


class VariadicSplitTransformation(ConstantSecond, variadic_split.VariadicSplitTransformation):
    pass
