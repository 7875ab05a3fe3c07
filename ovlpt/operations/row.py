"""One row of the table: what is asked of an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ovlpt.operations.checks import along_channels
from ovlpt.operations.facts import Check, Move
from ovlpt.operations.moves import keep
from ovlpt.trace import Reason

Kind = Literal["passes", "elementwise", "reduces", "weighted", "absent"]


@dataclass(frozen=True)
class Operation:
    """One row."""

    name: str
    kind: Kind
    opsets: tuple[str, ...] = ("opset1",)
    check: Check = along_channels
    move: Move = keep
    move_zero_point: Move | None = None  # where it differs from the scale's
    precision_preserved: bool = False
    preserves_where: Callable[[Mapping[str, Any]], bool] | None = None  # by attributes
    data_inputs: tuple[int, ...] | None = (0,)  # ports a restriction may name; None: any number (Concat)
    weights: tuple[int, ...] = ()  # ports of the weights of a weighted operation
    weights_axes: tuple[int, ...] = ()  # output channels of the weights, after those of groups
    input_axis: int | None = None  # input channels of the weights
    copies: bool = False  # outputs values of its data and no others
    homogeneous: bool = False  # ``f(x / d) == f(x) / d`` for each positive d; so is what copies
    why_absent: Reason | None = None
    added: tuple[str, ...] = ()  # versions for which the native library has no rule: not in `ovlpt.operations.native`

    def __hash__(self) -> int:
        """Rows of one name are few, and one is looked up with each node."""
        return hash(self.name)

    @property
    def versions(self) -> tuple[str, ...]:
        return (*self.opsets, *self.added)

    @property
    def type_names(self) -> list[str]:
        """As `WrapType` expects them: "opset1.MaxPool"."""
        return [f"{opset}.{self.name}" for opset in self.versions]

    @property
    def is_recurrent(self) -> bool:
        """Whether it has weights for its input, and recurrent ones."""
        return len(self.weights) > 1

    @property
    def follows_scale(self) -> bool:
        """Whether scaling the data by a factor scales the result by the same factor."""
        return self.copies or self.homogeneous

    @property
    def has_rule(self) -> bool:
        """Whether there is a rule for any version."""
        return self.kind != "absent" and bool(self.versions)

    def preserves_precision(self, attributes: Mapping[str, Any]) -> bool:
        """Whether the output of a node with these attributes has the element type of the data."""
        return self.precision_preserved and (self.preserves_where is None or self.preserves_where(attributes))

    def why_no_rule(self, opset: str) -> Reason | None:
        """Why there is no rule for the operation in this version ("opset14"); None where there is one."""
        if self.why_absent is not None:
            return self.why_absent
        if opset in self.versions:
            return None
        if not self.versions:
            return Reason("no_rule", f"the native library has no rule for {self.name}")
        known = " and ".join(self.versions)
        return Reason("no_rule", f"this is {self.name} of {opset}, and only that of {known} has a rule")
