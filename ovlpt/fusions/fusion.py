"""What every fusion shares: which nodes it is shown, which of them concern it, and how names stay."""

from __future__ import annotations

from typing import ClassVar

from ovlpt.graph.consumers import is_output
from ovlpt.layer_transformation import LayerTransformation, consumers_of, replace_output
from ovlpt.openvino_api import Node, Output


class Fusion(LayerTransformation):
    """One exact rewrite before quantization; a `MatcherPass` that can be registered alone.

    A node that `concerns` does not claim is passed over without an event; of every other the trace says what
    happened. `transform` may still raise `Rejected`, but only before it has changed anything.
    """

    operations: ClassVar[tuple[str, ...]]

    @classmethod
    def type_names(cls) -> list[str]:
        return list(cls.operations)

    def visit(self, node: Node) -> bool:
        return self.concerns(node) and super().visit(node)

    def concerns(self, node: Node) -> bool:
        """Whether the node looks like what the fusion is about."""
        return True


def is_shared(value: Output) -> bool:
    """Whether more than one consumer, or a Result, reads the value."""
    consumers = consumers_of(value)
    return len(consumers) != 1 or consumers[0].get_node().get_type_name() == "Result"


def take_over(old: Output, new: Output) -> None:
    """Let ``new`` stand where ``old`` stood; where a Result reads it, its producer takes the name."""
    if is_output(old):
        new.get_node().set_friendly_name(old.get_node().get_friendly_name())
    replace_output(old, new)


def forget_names(value: Output) -> None:
    """The tensor holds other numbers now and may no longer be found by its names."""
    if value.get_names():
        value.get_tensor().set_names(set())
