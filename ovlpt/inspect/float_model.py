"""The float network that a quantized one was made from, and the quantized one in float arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ovlpt import plugin_config
from ovlpt.device.loading import compile_given
from ovlpt.device.lowering.floats import part_floats
from ovlpt.device.lowering.folding import read_computed
from ovlpt.device.lowering.guards import part_from_clamp, part_from_negative_scale
from ovlpt.device.lowering.links import POST_OPERATIONS, block_fusion, links_above, other_constant
from ovlpt.device.properties import simulation
from ovlpt.graph.bodies import all_nodes, with_bodies
from ovlpt.graph.constants import (
    constant,
    constant_above,
    converted,
    is_constant_path,
    is_real,
    precision_of,
)
from ovlpt.graph.quantization_details import QuantizationDetails, finite
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import insert_after, replace_output, run_in_turn
from ovlpt.low_precision import MISREAD, MISREAD_FLOATS
from ovlpt.openvino_api import CompiledModel, Core, Model, Node, Output, opset1, opset6
from ovlpt.operations import RECURRENT
from ovlpt.operations.families import ARITHMETIC
from ovlpt.operations.values import is_scalar_like
from ovlpt.prerequisites.convert_precision import ConvertPrecision

_PRODUCTS = frozenset(("MatMul", "ScaledDotProductAttention"))
_RECURRENT = frozenset((*RECURRENT, "GRUCell", "LSTMCell", "RNNCell", "RNNSequence"))


def without_fake_quantize(model: Model) -> Model:
    """A clone whose activations are not quantized: each FakeQuantize is bypassed. Weights keep their quantized
    values, as real numbers: stored as integers, the plugin would take the network for one of compressed weights.
    What it computes wrongly of floats is kept from it (`part_floats`), and what OpenVINO misreads (`MISREAD_FLOATS`) is mended.
    """
    clone = model.clone()
    run_in_turn(clone, MISREAD_FLOATS)
    for node in clone.get_ordered_ops():
        if node.get_type_name() == "FakeQuantize":
            node.output(0).replace(node.input_value(0))
        _store_real(node)
    for node in all_nodes(clone):
        part_floats(node)
    clone.validate_nodes_and_infer_types()
    return clone


def simulate(
    model: Model, core: Core, device: str = "CPU", properties: Mapping[str, object] | None = None, in_f32: bool = True
) -> CompiledModel:
    """Compile the FakeQuantize simulation of ``model``: each FakeQuantize computed as such, in f32, or in the floats that
    ``properties`` name.

    What OpenVINO reads otherwise than it is defined is mended (`MISREAD`), and what the plugin computes wrongly in a float
    network is kept from it: small i8 weights of a MatMul (2024.6), reductions that take per-channel constants, a MatMul that
    takes constants or slopes by channel for those of its columns, what follows an If of dynamic sizes, a small
    convolution of them before a sum, a strided 1x1 convolution after one of several outputs, a GroupNormalization, a
    BatchNormInference of dynamic sizes, quantized weights of a recurrent layer, a FakeQuantize of so many levels that
    it drops it, or of dynamic sizes that constants per channel or column are fused into, or that a Clamp is of whose
    values none lies within it, or after a pool a scale by channel that is negative, intervals along an axis after the
    channels, and what is computed from constants and would be overwritten. Raises `InputError` for a model that the
    device cannot compile.
    """
    dropped = plugin_config.dropped_levels(device)
    clone = _computed_before(_computed_rightly(model, dropped), device, core)
    settings = simulation(device)
    if not in_f32:
        del settings["INFERENCE_PRECISION_HINT"]
    return compile_given(clone, device, {**(properties or {}), **settings}, core)


def _computed_rightly(model: Model, dropped: Collection[int]) -> Model:
    """A clone with integer weights as the real numbers that they are converted to, and apart what is computed wrongly else."""
    clone = model.clone()
    run_in_turn(clone, MISREAD)
    ConvertPrecision().run_on_model(clone)  # the plugin throws on some that compute in f16 in part
    for node in clone.get_ordered_ops():
        part_floats(node)
        if node.get_type_name() in _RECURRENT:
            _fold_weights(node)
        elif node.get_type_name() == "FakeQuantize":
            part_from_clamp(node)
            part_from_negative_scale(node)
            _quantize_apart(node)
            _quantize_at_higher_rank(node)
            if node.get_attributes()["levels"] in dropped:
                _quantize_in_steps(node)
        _store_real(node)
    return clone


def _store_real(convert: Node) -> None:
    """A constant of integers that is converted to real numbers, as these."""
    if convert.get_type_name() != "Convert" or not is_real(precision_of(convert.output(0))):
        return
    source = convert.input_value(0)
    if not is_real(precision_of(source)) and (values := folded_constant(source)) is not None:
        convert.output(0).replace(constant(values, precision_of(convert.output(0))).output(0))


def _computed_before(model: Model, device: str, core: Core) -> Model:
    """The model with what is computed from constants as a constant, where a CPU would store results in its place."""
    for body in with_bodies(model) if plugin_config.kind(device) == "CPU" else ():
        for node in body.get_ordered_ops():
            if node.get_type_name() == "ShapeOf" and (sizes := shape_of(node.input_value(0))) and None not in sizes:
                node.output(0).replace(constant(np.array(sizes), precision_of(node.output(0))).output(0))
        for node, port in read_computed(body):
            value = node.input_value(port)
            result = opset1.result(value)
            values = compile_given(Model([result], []).clone(), device, simulation(device), core)([])[0]
            value.remove_target_input(result.input(0))
            node.input(port).replace_source_output(constant(values, precision_of(value)).output(0))
    return model


def _fold_weights(layer: Node) -> None:
    """The plugin does not fold a FakeQuantize of constants, and throws where those of a recurrent layer are computed."""
    nodes = [node for value in layer.input_values() if is_constant_path(node := value.get_node())]
    while nodes:
        node = nodes.pop()
        if node.get_type_name() != "FakeQuantize" or not _fold(node.output(0)):
            nodes += [value.get_node() for value in node.input_values()]


def _fold(value: Output) -> bool:
    """Whether it is computed of constants: a constant stands for it then."""
    folded = folded_constant(value)
    if folded is not None:
        value.replace(constant(folded, precision_of(value)).output(0))
    return folded is not None


def _quantize_apart(quantize: Node) -> None:
    """The plugin fuses an operation with a constant per channel or column into the FakeQuantize after it, and where sizes
    are dynamic it reads the constant wrongly: wrong numbers, no error. Intervals by rows or heads that it fuses into a
    product it takes for those of columns, and throws.
    """
    source, shape = quantize.input_value(0).get_node(), shape_of(quantize.input_value(0))
    taken = [*map(constant_above, quantize.input_values()[1:]), *map(other_constant, links_above(source)[0])]
    if (
        any(values is not None and not is_scalar_like(values) for values in taken)
        and links_above(source, POST_OPERATIONS)[1].get_type_name() in _PRODUCTS
    ):
        block_fusion(source)
        return
    if source.get_type_name() not in ARITHMETIC or shape is None or None not in shape:
        return
    constants = map(folded_constant, source.input_values())
    if any(values is not None and not is_scalar_like(values) for values in constants):
        block_fusion(source)


def _quantize_at_higher_rank(quantize: Node) -> None:
    """``FQ(x) == squeeze(FQ(unsqueeze(x, 1)), 1)`` where the intervals vary along an axis after the channels.

    The plugin takes axis 2 of them for the channels: where a FakeQuantize is fused into an MVN or NormalizeL2 of rank 3, or
    into whatever layer of dynamic sizes, it has wrong numbers, and alone it throws. From axis 3 on it computes them by
    elementwise layers, which are right. Weights are folded: a scale after their layer would be moved into them past the
    Squeeze, in another shape than they have before it.
    """
    shape, ends = shape_of(quantize.input_value(0)), quantize.input_values()[1:]
    if shape is None or not any(_after_channels(shape_of(end), len(shape)) for end in ends):
        return
    if _fold(quantize.output(0)):
        return
    axis = constant(np.array(1))
    for port, value in enumerate(quantize.input_values()):
        if (size := shape_of(value)) is not None and len(size) == len(shape):
            quantize.input(port).replace_source_output(opset1.unsqueeze(value, axis).output(0))
    targets = quantize.output(0).get_target_inputs()
    quantize.validate_and_infer_types()
    narrow = opset1.squeeze(quantize, axis)
    insert_after(quantize.output(0), narrow.output(0), targets, [narrow])


def _quantize_in_steps(quantize: Node) -> None:
    """The plugin drops a FakeQuantize of so many levels, and with it what its interval clips."""
    details = QuantizationDetails.of(quantize)
    if details is None or (details.input_low >= details.input_high).any():
        return
    data = _in_type(quantize.input_value(0), "f32")  # f16 has no such numbers
    begin, end, first, last = map(finite, details.intervals)  # masks: the range of f32 and more
    low, high, least = (constant(each, "f32") for each in (begin, end, first))
    steps = details.levels - 1
    inside = opset1.subtract(opset1.minimum(opset1.maximum(data, low), high), low)
    whole = opset6.round(opset1.multiply(inside, constant(steps / (end - begin), "f32")), "half_to_even")
    rounded = opset1.add(opset1.multiply(whole, constant((last - first) / steps, "f32")), least)
    found = _in_type(rounded.output(0), precision_of(quantize.output(0)))
    found.get_node().set_friendly_name(quantize.get_friendly_name())
    replace_output(quantize.output(0), found)


def _in_type(value: Output, precision: str) -> Output:
    return value if precision_of(value) == precision else converted(value, precision).output(0)


def _after_channels(size: tuple[int | None, ...] | None, rank: int) -> bool:
    return size is not None and rank > 2 and any(each != 1 for each in size[max(len(size) - rank + 2, 0) :])
