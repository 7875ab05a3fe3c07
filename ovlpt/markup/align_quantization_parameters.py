from __future__ import annotations

from ovlpt.attributes import QuantizationAlignment, QuantizationGranularity
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.markup.propagation import (
    CreateAttribute,
    PropagateThroughPrecisionPreserved,
    UpdateSharedPrecisionPreserved,
    is_precision_preserved,
)
from ovlpt.openvino_api import Model, Node


class AlignQuantizationParameters(ModelTransformation):
    """Tensors that meet before an operation that wants per-tensor quantization share one scale and zero point."""

    def run_on_model(self, model: Model) -> bool:
        settings = self.settings()

        def unaligned(node: Node) -> QuantizationAlignment | None:
            return QuantizationAlignment(False) if is_precision_preserved(self.attributes, node) else None

        for step in (
            CreateAttribute(None, unaligned, **settings),
            PropagateThroughPrecisionPreserved(QuantizationAlignment, **settings),
            UpdateSharedPrecisionPreserved(QuantizationAlignment, QuantizationGranularity, **settings),
        ):
            step.run_on_model(model)
        return False
