"""The float network behind a quantized one."""

from __future__ import annotations

from ovlpt.openvino_api import Model


def without_fake_quantize(model: Model) -> Model:
    """A clone whose activations are not quantized: each FakeQuantize is bypassed. Weights keep their quantized
    values.
    """
    clone = model.clone()
    for node in clone.get_ordered_ops():
        if node.get_type_name() == "FakeQuantize":
            node.output(0).replace(node.input_value(0))
    clone.validate_nodes_and_infer_types()
    return clone
