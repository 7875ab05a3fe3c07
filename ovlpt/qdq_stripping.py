from __future__ import annotations

from collections.abc import Iterable

from ovlpt.cleanup.fq_stripping import FQStrippingTransformation
from ovlpt.graph.bodies import all_nodes
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.openvino_api import Manager, Model, as_model
from ovlpt.precisions import INT8, INT16, LEVELS
from ovlpt.prerequisites.convert_quantize_dequantize import ConvertQuantizeDequantize


class QDQStripping(ModelTransformation):
    """Drops each quantization to one of the given ``levels`` that a device has no arithmetic for, in either form.

    A pair of Quantize and Dequantize becomes one FakeQuantize first; then `FQStrippingTransformation`, which leaves its
    clipping, if that may matter. It comes before everything else: with ``native_only`` nothing is left, and once a Relu before
    such a FakeQuantize has been folded into its interval, dropping it would drop the Relu. ``need_weights_adjustment``: of `FQStrippingTransformation`.
    Source: the passes that the plugins run before their LPT on a model quantized to 16 bits.
    """

    def __init__(self, levels: Iterable[int], need_weights_adjustment: bool = False, **settings):
        super().__init__(**settings)
        self.levels = frozenset(levels)
        self.need_weights_adjustment = need_weights_adjustment

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        quantized = (node for node in all_nodes(model) if node.get_type_name() == "FakeQuantize")
        if not any(node.get_attributes()["levels"] in self.levels for node in quantized):
            return False
        stored = [each for each in (*INT8, *INT16) if not self.levels.isdisjoint(LEVELS[each])]
        manager, settings = Manager(), self.settings()
        manager.register_pass(ConvertQuantizeDequantize(precisions=stored, ignore_consumers=True, **settings))
        manager.register_pass(FQStrippingTransformation(self.levels, self.need_weights_adjustment, **settings))
        manager.run_passes(model)
        return True
