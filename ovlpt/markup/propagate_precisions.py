from __future__ import annotations

from ovlpt.attributes import Precisions
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.markup.propagation import CreateAttribute, PropagateThroughPrecisionPreserved, PropagateToInput
from ovlpt.openvino_api import Model


class PropagatePrecisions(ModelTransformation):
    """Every FakeQuantize learns which element types all its consumers take, through any precision-preserved chain."""

    def run_on_model(self, model: Model) -> bool:
        settings = self.settings()
        for step in (
            CreateAttribute(
                {"FakeQuantize"},
                lambda _: Precisions(self.params.default_precisions),
                lambda node: node.output(0),
                **settings,
            ),
            PropagateThroughPrecisionPreserved(Precisions, **settings),
            PropagateToInput(Precisions, **settings),
        ):
            step.run_on_model(model)
        return False
