from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovlpt.graph.attention import MISREADS_BOOLEANS, of_mask, reads_cache
from ovlpt.graph.constants import precision_of
from ovlpt.graph.names import Made, made_for
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import RELEASE, Node
from ovlpt.precisions import REAL
from ovlpt.trace import Reason


class BooleanMasks(LayerTransformation):
    """The boolean mask of an attention as the floats that are added to its scores: 0 where it is true, else minus infinity.

    Before 2025.3 OpenVINO hides what it shows, but for attentions that the CPU plugin fuses with a cache, on which 2024.6
    throws. A row that is hidden whole gives no number, as it does on later releases.
    """

    quiet = True
    added: ClassVar = (0.0, -np.inf)  # where it is true, and where it is not
    why = Reason("boolean_mask", "what its boolean mask shows would be hidden, and the reverse")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset13.ScaledDotProductAttention"]

    def concerns(self, node: Node) -> bool:
        if not MISREADS_BOOLEANS or node.get_input_size() < 4 or node.get_attributes()["causal"]:
            return False
        if precision_of(node.input_value(3)) != "boolean" or precision_of(node.input_value(0)) not in REAL:
            return False
        return RELEASE < (2025, 0) or not reads_cache(node)

    def transform(self, node: Node) -> None:
        mask = of_mask(node.input_value(3), *self.added, precision_of(node.input_value(0)))
        mask.get_node().set_friendly_name(made_for(node.get_friendly_name(), Made.MASK))
        node.input(3).replace_source_output(mask)
