"""What checks and moves are: functions of facts about a node, and never of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ovlpt.trace import Reason

Shape = tuple[int | None, ...]  # None: a dynamic dimension


@dataclass(frozen=True)
class NodeFacts:
    """What a check or a move may know of a node."""

    shape: Shape | None  # of input 0; None: dynamic rank
    output_shape: Shape | None  # of output 0
    attributes: Mapping[str, Any]
    constants: tuple[np.ndarray | None, ...]  # per input: its value where it is a Constant
    scale: np.ndarray  # of the dequantization on input 0, float32; ones where there is none
    zero_point: np.ndarray | None
    channel_axis: int = 1
    only_consumer: str | None = None  # its type, where there is just one
    strict: bool = False  # Params.reshape_ignore_per_tensor_quantization_check
    rows_fit: bool = False  # values without other axes are taken for those of the channels, as in the native library
    is_low: bool = True  # else it is the real sum of a weighted operation, whose scale is better left where it is

    def but(self, **changes: Any) -> NodeFacts:
        """The same, with these in place of their own."""
        return replace(self, **changes)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def values(self) -> tuple[np.ndarray, ...]:
        return (self.scale,) if self.zero_point is None else (self.zero_point, self.scale)


Check = Callable[[NodeFacts], Reason | None]


Move = Callable[[np.ndarray, NodeFacts], np.ndarray]
