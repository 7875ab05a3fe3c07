"""Recurrent layers: how their data comes, and one direction each."""

from __future__ import annotations

import numpy as np

from ovlpt.device.lowering.fake_quantize import on_other_data
from ovlpt.fake_quantize import fake_quantize
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import (
    constant,
    constant_above,
    is_constant_path,
    is_real,
    kept_apart,
    precision_of,
    values_of,
)
from ovlpt.graph.dequantization import Dequantization, dequantization_above
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import MOVES, in_both_directions, kernel, weights_ports, with_quantized_weights
from ovlpt.graph.relaxed import same_on
from ovlpt.graph.weights import varies_along
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, opset1

_DATA, _STATE = 0, 1  # inputs
_AT_A_TIME = 4  # integers that a kernel multiplies in one instruction


def drop_grid_of_stored(quantize: Node) -> Node | None:
    """A FakeQuantize that changes none of the stored integers that only Broadcasts and moves bring to it."""
    source = quantize.input_value(0)
    while (kind := source.get_node().get_type_name()) in MOVES or kind == "Broadcast":
        source = source.get_node().input_value(0)
    if not isinstance(source.get_node(), Constant) or precision_of(source) != precision_of(quantize.output(0)):
        return None
    if is_real(precision_of(source)):
        return None
    values, details = values_of(source.get_node()).astype(np.float32), QuantizationDetails.of(quantize)
    if details is None or any(end.size > 1 for end in details.intervals):
        return None
    if not np.array_equal(np.rint(fake_quantize(values, *details.intervals, details.levels)), values):
        return None
    replace_output(quantize.output(0), quantize.input_value(0))
    return source.get_node()


def quantize_after_transpose(layer: Node) -> Node | None:
    """``transpose(FQ(x))`` as ``FQ(transpose(x))`` before a recurrent layer, where the ends are the same everywhere; with
    all else that moves the integers.

    The plugin's own LPT forms the quantized layer, and no longer finds a zero point beyond integers that are transposed.
    """
    changed = None
    for port in (_DATA, _STATE):
        value = source = dequantization_above(layer, port).data
        moves: list[Output] = []
        while source.get_node().get_type_name() in MOVES:
            moves.insert(0, source)
            source = source.get_node().input_value(0)
        quantize = source.get_node()
        is_transposed = any(each.get_node().get_type_name() == "Transpose" for each in moves)
        if not is_transposed or quantize.get_type_name() != "FakeQuantize":
            continue
        ends = map(constant_above, quantize.input_values()[1:])
        if any(values is None or values.size > 1 for values in ends):
            continue
        data = quantize.input_value(0)
        for each in moves:
            data = _again(each.get_node(), data).output(each.get_index())
        replace_output(value, _again(quantize, data).output(0))
        changed = layer
    return changed


def read_after_transpose(layer: Node) -> Node | None:
    """The maximum of integers and the least of them, where a recurrent layer with a zero point reads what was transposed.

    The plugin would move Convert and zero point up before the Transpose, where its own LPT no longer finds them. Of
    integers that a FakeQuantize gives `quantize_after_transpose` takes care, by fewer layers.
    """
    changed = None
    for port in (_DATA, _STATE):
        found = dequantization_above(layer, port)
        if found.convert is None or found.subtract is None or not found.is_low_precision:
            continue
        source = found.data
        while (kind := source.get_node().get_type_name()) in MOVES and kind != "Transpose":
            source = source.get_node().input_value(0)
        if kind == "Transpose":
            alone = kept_apart(found.data)
            alone.set_friendly_name(made_for(found.data.get_node().get_friendly_name(), Made.ALONE))
            found.convert.input(0).replace_source_output(alone.output(0))
            changed = layer
    return changed


def slice_data(layer: Node) -> Node | None:
    """A part of a VariadicSplit as a Slice, before a layer of other steps than the first part has."""
    value = dequantization_above(layer, _DATA).data
    split = value.get_node()
    if split.get_type_name() != "VariadicSplit":
        return None
    axis = constant_above(split.input_value(1))
    shapes = [output.get_partial_shape() for output in split.outputs()[: value.get_index() + 1]]
    if axis is None or shapes[0] == shapes[-1] or any(shape[int(axis)].is_dynamic for shape in shapes):
        return None
    *before, size = (shape[int(axis)].get_length() for shape in shapes)
    ends = (sum(before), sum(before) + size, 1, int(axis))
    inputs = [split.input_value(0), *(constant(np.array([end]), "i64").output(0) for end in ends)]
    part = NodeFactory("opset8").create("Slice", inputs)
    part.set_friendly_name(f"{split.get_friendly_name()}.{value.get_index()}")
    replace_output(value, part.output(0))
    return layer


def tell_apart(model: Model) -> list[Node]:
    """Layers of one kernel get data of different sizes: columns that weights of zero read are added.

    The plugin keeps kernels by kind, direction and sizes, and with them the scales. A number that the kernel takes at a time
    is added: a size between might have another kernel.
    """
    taken, widened, changed = set[tuple[object, ...]](), dict[tuple[object, ...], Output](), []
    for layer in list(with_quantized_weights(all_nodes(model))):
        columns = 0
        while kernel(layer, columns) in taken:
            columns += _AT_A_TIME
        if columns and _widen(layer, columns, widened):
            changed.append(layer)
        taken.add(kernel(layer))
    return changed


def _widen(layer: Node, columns: int, widened: dict[tuple[object, ...], Output]) -> bool:
    """Add columns to the data and the weights. ``widened``: data that other layers read so."""
    port = weights_ports(layer)[0]
    data, weights = layer.input_value(_DATA), dequantization_above(layer, port)
    if not isinstance(weights.data.get_node(), Constant) or not _is_by_output(weights):
        return False
    key = data.get_node().get_instance_id(), data.get_index(), columns
    if key not in widened:
        wider = _wider_data(layer, columns)
        if wider is None:
            return False
        widened[key] = wider
    stored = values_of(weights.data.get_node())
    zeros = np.zeros((*stored.shape[:-1], columns), stored.dtype)
    if weights.zero_point is not None:
        zeros += np.asarray(weights.zero_point).astype(stored.dtype)
    wide = constant(np.concatenate([stored, zeros], -1), precision_of(weights.data))
    layer.input(port).replace_source_output(_dequantized(weights, wide.output(0)))
    layer.input(_DATA).replace_source_output(widened[key])
    layer.validate_and_infer_types()
    return True


def _wider_data(layer: Node, columns: int) -> Output | None:
    """Its data with so many columns more; None where they are not quantized as one, or of an open rank."""
    found, name = dequantization_above(layer, _DATA), made_for(layer.get_friendly_name(), Made.WIDE)
    source, rank = found.data.get_node(), found.data.get_partial_shape().rank
    if rank.is_dynamic or not found.is_per_tensor:
        return None

    def padded(value: Output) -> Output:
        ends = [constant(np.array([0] * (rank.get_length() - 1) + [last]), "i64") for last in (0, columns)]
        pad = opset1.pad(value, *ends, "constant", constant(np.array(0), precision_of(value)))
        pad.set_friendly_name(name)
        return pad.output(0)

    if found.convert is not None:
        return _dequantized(found, padded(found.data))
    ends = map(constant_above, source.input_values()[1:]) if source.get_type_name() == "FakeQuantize" else [None]
    if any(values is None or values.size > 1 for values in ends):
        return None
    return _again(source, padded(source.input_value(0))).output(0)


def _is_by_output(weights: Dequantization) -> bool:
    """Whether scales and zero points are the same for all columns of the data."""
    rank = len(weights.data.get_shape())
    constants = [each for each in (weights.scale, weights.zero_point) if each is not None]
    return weights.is_low_precision and all(varies_along(each, rank, range(rank - 1)) for each in constants)


def _dequantized(found: Dequantization, data: Output) -> Output:
    """Other integers after the same dequantization."""
    above = found.data.get_node()
    for link in (found.convert, found.subtract, found.multiply):
        if link is not None:
            number = above.get_instance_id()
            inputs = [data if each.get_node().get_instance_id() == number else each for each in link.input_values()]
            above, data = link, same_on(link, inputs).output(0)
    return data


def _again(node: Node, data: Output) -> Node:
    """The same on other data. What else reads the node goes on to do so."""
    is_quantization = node.get_type_name() == "FakeQuantize"
    new = on_other_data(node, data) if is_quantization else same_on(node, [data, *node.input_values()[1:]])
    if sum(len(output.get_target_inputs()) for output in node.outputs()) > 1:
        new.set_friendly_name(made_for(node.get_friendly_name(), Made.AGAIN))
    return new


def one_direction_each(node: Node) -> Node | None:
    """A bidirectional sequence as a forward and a reverse one, as the plugin would have it, each with a name."""
    if node.get_attributes()["direction"] != "bidirectional":
        return None
    joined = in_both_directions(node, _halves)
    for output, each in zip(node.outputs(), joined, strict=True):
        each.set_friendly_name(f"{node.get_friendly_name()}.{output.get_index()}")
        if output.get_target_inputs():
            replace_output(output, each.output(0))
    return joined[0]


def _halves(value: Output, axis: int) -> list[Output]:
    """Of weights the integers are halved, so that what dequantizes them stays next to the layer."""
    node = value.get_node()
    if not is_constant_path(node):
        return opset1.split(value, constant(np.array(axis), "i64"), 2).outputs()
    if isinstance(node, Constant):
        shape = list(value.get_shape())
        if len(shape) <= axis or shape[axis] == 1:
            return [value, value]
        parts = np.split(values_of(node), 2, axis)
        return [constant(np.ascontiguousarray(part), precision_of(value)).output(0) for part in parts]
    sources = [_halves(each, axis) for each in node.input_values()]
    return [same_on(node, list(inputs)).output(0) for inputs in zip(*sources, strict=True)]
