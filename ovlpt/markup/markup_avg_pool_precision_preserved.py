from __future__ import annotations

from ovlpt.attributes import AvgPoolPrecisionPreserved, PrecisionPreserved
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.markup.propagation import PropagateThroughPrecisionPreserved, UpdateSharedPrecisionPreserved
from ovlpt.openvino_api import Model


class MarkupAvgPoolPrecisionPreserved(ModelTransformation):
    """An AvgPool keeps low precision where what it feeds is quantized."""

    def run_on_model(self, model: Model) -> bool:
        settings = self.settings()
        for node in model.get_ordered_ops():
            if node.get_type_name() == "AvgPool" and node.get_type_info().version_id == "opset1":
                pool, preserved = AvgPoolPrecisionPreserved(False), PrecisionPreserved(False)
                preserved.shared = pool.shared  # what decides for the pool decides whether it preserves precision
                self.attributes.set(node, pool)
                self.attributes.set(node, preserved)
        for step in (
            PropagateThroughPrecisionPreserved(AvgPoolPrecisionPreserved, **settings),
            UpdateSharedPrecisionPreserved(AvgPoolPrecisionPreserved, **settings),
        ):
            step.run_on_model(model)
        return False
