from __future__ import annotations

from ovlpt.attributes import DisableCleanup
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.trace import reject_unless


class CleanupTransformation(LayerTransformation):
    """A cleanup pass leaves alone what a plugin is to recognize."""

    quiet = True  # finding nothing to clean is not a refusal worth recording

    def can_be_transformed(self, node: Node) -> None:
        reject_unless(self.attributes.get(node, DisableCleanup) is None, "cleanup_disabled", "a plugin recognizes it")
