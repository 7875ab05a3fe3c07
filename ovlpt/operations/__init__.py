"""THE TABLE: one row per operation answers every question about it.

A row says which nodes it means, how a dequantization passes them (a pure function: constant before → constant after),
under which conditions, and whether the output stays in low precision. Checks and moves receive plain values, never
nodes. A check returns None or the `Reason` against.

Five kinds of row:

``passes``       moves data; the dequantization goes through, constants at most rearranged
``elementwise``  computes element by element
``reduces``      computes over axes
``weighted``     the operations for which all this is done: they run on integers
``absent``       no rule, and why
"""

from ovlpt.operations.checks import (
    all_of,
    along_channels,
    constant_input,
    no_zero_point,
    per_tensor,
    positive_scale,
    scalar_like,
    static_rank,
)
from ovlpt.operations.facts import Check, Move, NodeFacts, Shape
from ovlpt.operations.moves import keep
from ovlpt.operations.native import as_native, operation_of
from ovlpt.operations.row import Operation
from ovlpt.operations.table import OPERATIONS, RECURRENT, WEIGHTED

__all__ = [
    "OPERATIONS",
    "RECURRENT",
    "WEIGHTED",
    "Check",
    "Move",
    "NodeFacts",
    "Operation",
    "Shape",
    "all_of",
    "along_channels",
    "as_native",
    "constant_input",
    "keep",
    "no_zero_point",
    "operation_of",
    "per_tensor",
    "positive_scale",
    "scalar_like",
    "static_rank",
]
