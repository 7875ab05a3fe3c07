from __future__ import annotations

from typing import Any

from ovlpt.attributes import DisableCleanup
from ovlpt.cleanup.fuse_convert import FuseConvertTransformation
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import precision_of, remembering
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import DEQUANTIZATION
from ovlpt.layer_transformation import LayerTransformation, ModelTransformation, replace_output
from ovlpt.openvino_api import Constant, Model, Node, Tensor
from ovlpt.operations.families import BRING_DATA
from ovlpt.precisions import NUMPY


class FoldConstants(ModelTransformation):
    """An operation on constants becomes a constant, but for the dequantization of weights that a plugin recognizes.

    ``quantizations``: the pass that is shown each FakeQuantize, after what it reads has been folded; None where they stay.
    """

    def __init__(self, quantizations: LayerTransformation | None = None, **settings: Any):
        super().__init__(**settings)
        self.quantizations = quantizations

    def run_on_model(self, model: Model) -> bool:
        folds = not self.pass_config.is_disabled(type(self))
        with remembering():
            for node in all_nodes(model):
                if node.get_type_name() == "FakeQuantize":
                    if self.quantizations is not None:
                        self.quantizations.visit(node)
                elif folds and (inputs := _constants_of(node)) and not self._is_kept(node):
                    self._fold(node, inputs)
        return False

    def _is_kept(self, node: Node) -> bool:
        """Marked, or what OpenVINO never folds, or left alone by the callback of FuseConvertTransformation, which is asked about
        the same chains.
        """
        if node.get_type_name() in BRING_DATA or self.attributes.get(node, DisableCleanup):
            return True
        if node.get_type_name() not in DEQUANTIZATION:
            return False
        chain = [node, *readers_of(node)]
        return any(self.pass_config.leaves_alone(FuseConvertTransformation, link) for link in chain)

    @staticmethod
    def _fold(node: Node, inputs: list[Constant]) -> None:
        outputs = node.outputs()
        if any(value.get_partial_shape().is_dynamic or precision_of(value) not in NUMPY for value in outputs):
            return
        if any(precision_of(source.output(0)) not in NUMPY for source in inputs):
            return
        results = [Tensor(value.get_element_type(), value.get_shape()) for value in outputs]
        if not node.evaluate(results, [Tensor(source.data) for source in inputs]):
            return
        for value, result in zip(outputs, results, strict=True):
            folded = Constant(result.data)
            folded.set_friendly_name(node.get_friendly_name())
            replace_output(value, folded.output(0))


def _constants_of(node: Node) -> list[Constant]:
    """What a node reads where that are constants alone; else none."""
    inputs = []
    for port in range(node.get_input_size()):  # the first that is none ends it
        source = node.input_value(port).get_node()
        if not isinstance(source, Constant):
            return []
        inputs.append(source)
    return inputs
