from __future__ import annotations

from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import AFFINE
from ovlpt.precisions import INT4, NUMPY, REAL
from ovlpt.trace import reject_unless

_COMPUTED = REAL | NUMPY.keys() | {*INT4, "boolean"}  # in kernels, or once the plugin has widened it


class FuseConvertTransformation(CleanupTransformation):
    """``op(Convert(x), c)`` reads ``x`` itself; over a constant ``x`` the Convert is folded."""

    @classmethod
    def type_names(cls) -> list[str]:
        return [f"opset1.{name}" for name in (*sorted(AFFINE), "FakeQuantize")]

    def has_form(self, node: Node) -> bool:
        return node.input_value(0).get_node().get_type_name() == "Convert"

    @staticmethod
    def _check_open_sizes(node: Node) -> None:
        """Data that is broadcast to the constant is so without the Convert, too."""

    def can_be_transformed(self, node: Node) -> None:
        super().can_be_transformed(node)
        convert = node.input_value(0).get_node()
        reject_unless(precision_of(convert.output(0)) in ("f16", "f32"), "not_real", "the Convert's type is not real")
        if isinstance(convert.input_value(0).get_node(), Constant):
            return
        reject_unless(node.get_type_name() != "FakeQuantize", "activations", "a FakeQuantize keeps its Convert")
        other = node.input_value(1).get_node()
        reject_unless(isinstance(other, Constant), "not_constant", "the other input is not a constant")
        source = precision_of(convert.input_value(0))
        self._check_source(source)
        self._check_layer(convert.input_value(0))
        if node.get_type_name() == "Subtract" and source.startswith("u"):
            reject_unless((values_of(other) >= 0).all(), "negative", f"{source} data minus a negative constant")

    def _check_source(self, source: str) -> None:
        """Plugins compute with no other types: it throws, or the outputs are empty, and memory that is not theirs is read."""
        reject_unless(source in _COMPUTED, "not_real", f"no kernel computes with {source}")

    def _check_layer(self, data: Output) -> None:
        """The scale would be fused into weights that are integers, which throws."""
        keeps = data.get_node().get_type_name() in WEIGHTED and precision_of(data) not in REAL
        reject_unless(not keeps, "not_real", f"a layer that gives {precision_of(data)} keeps its Convert")

    def transform(self, node: Node) -> None:
        convert = node.input_value(0).get_node()
        source = convert.input_value(0)
        if isinstance(source.get_node(), Constant):
            folded = constant(values_of(source.get_node()), precision_of(convert.output(0)))
            node.input(0).replace_source_output(folded.output(0))
            return
        inputs = [source, node.input_value(1)]
        fused = relaxed(node.get_type_name(), inputs, precision_of(node.output(0)), {"auto_broadcast": "numpy"})
        fused.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, fused)
        replace_output(node.output(0), fused.output(0))
        self.register_new_node(fused)
