"""FakeQuantize, and the cells that have theirs decomposed."""

from __future__ import annotations

from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.main import fake_quantize, fake_quantize_decomposition, recurrent_cell
from ovlpt.openvino_api import RELEASE, Constant, Node, Output


class FakeQuantizeTransformation(fake_quantize.FakeQuantizeTransformation):
    def _is_constant(self, value: Output) -> bool:
        return isinstance(value.get_node(), Constant)

    def _stays(self, link: Node, below: Node) -> bool:
        """Whoever else reads the scale or bias, it is taken in."""
        return False

    def _reads(self, source: str) -> bool:
        """Whatever kernels take."""
        return source != "i32"


class FakeQuantizeDecompositionTransformation(fake_quantize_decomposition.FakeQuantizeDecompositionTransformation):
    """All integers of the type are taken, also where there is one more than levels."""

    one_each = False
    narrow_has_no_zero_point = True
    clips_scales = True
    shapes_follow = True

    def _is_branch(self, node: Node) -> bool:
        return False

    def _meets_others(self, node: Node, dequantized: Output) -> bool:
        """A FakeQuantize before a Convert to integers is decomposed without regard to others."""
        return False

    def _fitting(self, details: QuantizationDetails, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """With one allowed type the levels are not checked, except for more than 256: before 2026.3 they are, and i8 makes the
        native pass throw.
        """
        is_refused = details.levels > 256 and (RELEASE < (2026, 3) or allowed == ("i8",))
        asks = is_refused or (len(allowed) > 1 and details.levels != 15)
        return super()._fitting(details, allowed) if asks else allowed


class RecurrentCellTransformation(recurrent_cell.RecurrentCellTransformation):
    """It begins with the inputs that it finds, and stops at the first that the cell cannot take."""

    is_whole = False
    shapes_follow = True
