"""The float network that a quantized one was made from, and the quantized one in float arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from ovlpt.device.loading import compile_given
from ovlpt.device.lowering.guards import block_fusion
from ovlpt.device.lowering.reductions import REDUCTIONS, reduce_alone
from ovlpt.device.properties import simulation
from ovlpt.graph.constants import constant, constant_above, is_real, precision_of, values_of
from ovlpt.graph.shapes import shape_of
from ovlpt.openvino_api import CompiledModel, Constant, Core, Model, Node
from ovlpt.operations.families import ARITHMETIC
from ovlpt.operations.values import is_scalar_like


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

    What the plugin computes wrongly in a float network is kept from it: small i8 weights of a MatMul (2024.6),
    reductions that take per-channel constants, and FakeQuantize that per-column constants are fused into, where the
    number of rows is dynamic. Raises `InputError` for a model that the device cannot compile.
    """
    return compile_given(_computed_rightly(model), device, {**(properties or {}), **simulation(device)}, core)


def _computed_rightly(model: Model) -> Model:
    """A clone with integer weights as the real numbers that they are converted to, and with reductions alone."""
    clone = model.clone()
    for node in clone.get_ordered_ops():
        if node.get_type_name() in REDUCTIONS:
            reduce_alone(node)
        elif node.get_type_name() == "FakeQuantize":
            _quantize_apart(node)
        elif node.get_type_name() == "Convert" and is_real(precision_of(node.output(0))):
            source = node.input_value(0).get_node()
            if isinstance(source, Constant) and not is_real(precision_of(source.output(0))):
                node.output(0).replace(constant(values_of(source), precision_of(node.output(0))).output(0))
    return clone


def _quantize_apart(quantize: Node) -> None:
    """The plugin fuses an operation with a per-column constant into the FakeQuantize after it, and where the number of rows
    is dynamic it takes the columns for the rows: wrong numbers, no error.
    """
    source, shape = quantize.input_value(0).get_node(), shape_of(quantize.input_value(0))
    if source.get_type_name() not in ARITHMETIC or shape is None or len(shape) != 2 or None not in shape:
        return
    constants = map(constant_above, source.input_values())
    if any(values is not None and not is_scalar_like(values) for values in constants):
        block_fusion(source)
