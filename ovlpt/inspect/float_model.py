"""The float network that a quantized one was made from, and the quantized one in float arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from ovlpt.device.loading import compile_given
from ovlpt.device.lowering.reductions import REDUCTIONS, reduce_alone
from ovlpt.device.properties import simulation
from ovlpt.graph.constants import constant, is_real, precision_of, values_of
from ovlpt.openvino_api import CompiledModel, Constant, Core, Model


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


def simulate(
    model: Model, core: Core, device: str = "CPU", properties: Mapping[str, object] | None = None
) -> CompiledModel:
    """Compile the FakeQuantize simulation of ``model``: each FakeQuantize computed as such, in f32.

    What the plugin computes wrongly in a float network is kept from it: small i8 weights of a MatMul (2024.6), and
    reductions that take per-channel constants. Raises `InputError` for a model that the device cannot compile.
    """
    return compile_given(_computed_rightly(model), device, {**(properties or {}), **simulation(device)}, core)


def _computed_rightly(model: Model) -> Model:
    """A clone with integer weights as the real numbers that they are converted to, and with reductions alone."""
    clone = model.clone()
    for node in clone.get_ordered_ops():
        if node.get_type_name() in REDUCTIONS:
            reduce_alone(node)
        elif node.get_type_name() == "Convert" and is_real(precision_of(node.output(0))):
            source = node.input_value(0).get_node()
            if isinstance(source, Constant) and not is_real(precision_of(source.output(0))):
                node.output(0).replace(constant(values_of(source), precision_of(node.output(0))).output(0))
    return clone
