"""Names of nodes: what is added to the name of the operation that a node was made for, and the way back.

A name that is an operation's own in the model that was given may end with the same words, as names from ONNX files do.
So only what is said here is taken off, and only at the end.
"""

from __future__ import annotations

import re
from enum import StrEnum

ORIGINAL_SUFFIX = (
    "_original"  # an operation whose name went to the dequantization after it, as the native library calls it
)


class Made(StrEnum):
    """What a node was made as, of the operation whose name it begins with."""

    AGAIN = "Again"  # the same on other data
    ALONE = "Alone"  # keeps what follows out of a fusion
    AXES = "Axes"  # before a constant adds some, or after
    CHANNELS_FIRST = "channels_first"
    CLIP = "Clip"
    DEQUANTIZATION = "Dequantization"  # Convert, Subtract, Multiply or Sums after it
    F32 = "F32"
    F64 = "F64"
    FORWARD = "Forward"  # of a bidirectional layer
    FULL_BRANCH = "FullBranch"  # of an elementwise operation: keeps the dequantization
    GROUP_CONVOLUTION = "GroupConvolution"
    GUARD = "Guard"  # keeps what follows out of a fusion into the layer
    INTERVAL = "Interval"
    MASK = "Mask"  # in floats
    OF_VECTOR = "MM"  # the plugin's own: the MatMul of a vector, of which it makes a matrix
    PERMUTED = "Permuted"  # in part
    PIECES = "Pieces"
    RANK_3 = "Rank3"
    RANK_5 = "Rank5"
    REAL = "Real"
    REVERSE = "Reverse"  # of a bidirectional layer
    ROW = "Row"  # a vector as a matrix of one row
    SCALE = "Scale"
    SHIFT = "Shift"
    SIGNED = "Signed"  # quantizes to i8 what others read as u8
    STRIDES = "Strides"  # of a convolution, in a pool
    TWO_AXES = "TwoAxes"
    WHOLE = "Whole"  # less the rest of a division
    WIDE = "Wide"  # of some columns more
    WITHOUT_BIASES = "WithoutBiases"  # the plugin's own
    ZERO_POINT = "ZeroPoint"


_RENAMED = (
    ORIGINAL_SUFFIX,
    *(
        f"/{made}"
        for made in (
            Made.RANK_3,
            Made.RANK_5,
            Made.ROW,
            Made.TWO_AXES,
            Made.GUARD,
            Made.SCALE,
            Made.WIDE,
            Made.WITHOUT_BIASES,
            Made.OF_VECTOR,
            Made.FORWARD,
            Made.REVERSE,
        )
    ),
)
_BY_LAYER = (Made.FULL_BRANCH, Made.GUARD, Made.OF_VECTOR, Made.RANK_3, Made.ROW, Made.SCALE)
_ADDED = re.compile(rf"({ORIGINAL_SUFFIX}|/DequantizationMultiply|/({'|'.join(_BY_LAYER)}))+$")


def made_for(name: str, made: Made | str) -> str:
    """The name of a node that is made for the operation of this name."""
    return f"{name}/{made}"


def dequantization(name: str, part: str) -> str:
    """Of the dequantization that has moved after an operation; ``part``: Convert, Subtract, Multiply, or Sums by number."""
    return made_for(name, f"{Made.DEQUANTIZATION}{part}")


def is_dequantization(name: str) -> bool:
    return f"/{Made.DEQUANTIZATION}" in name


def original(name: str) -> str:
    """Of an operation that gives its name to the dequantization after it."""
    return name if name.endswith(ORIGINAL_SUFFIX) else name + ORIGINAL_SUFFIX


def given(name: str) -> str:
    """The name that an operation had before the dequantization after it got it."""
    return name.removesuffix(ORIGINAL_SUFFIX)


def renamed(name: str) -> str:
    """The name that an operation had before a dequantization, the lowering or the plugin renamed it."""
    for suffix in _RENAMED:
        name = name.removesuffix(suffix)
    return name


def without_added(name: str) -> str:
    """The name of the operation that a layer is called after, be it by its scale or by what follows it."""
    return _ADDED.sub("", name)
