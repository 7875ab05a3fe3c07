"""What a GPU alone asks for (tried on virtual ones)."""

from __future__ import annotations

import math

import numpy as np

from ovlpt.device.lowering.element_types import convert_data, is_widened, meets_weights, would_be_dropped
from ovlpt.device.lowering.fake_quantize import in_steps
from ovlpt.device.lowering.links import FLOAT_MAX, guard_output
from ovlpt.device.lowering.reshaping import ON_A_GPU, between_reshapes, chain_after, is_constant
from ovlpt.graph.constants import constant, constant_above, is_constant_path, is_real, precision_of, values_of
from ovlpt.graph.consumers import is_output, readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, relaxed, relaxed_like, same_on
from ovlpt.graph.shapes import Shape, reshaped, shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, opset1, opset8
from ovlpt.operations import RECURRENT
from ovlpt.operations.families import ARITHMETIC
from ovlpt.precisions import INT8, REAL

_MANY_AXES, _OF_8_BITS = 5, 256  # of a FakeQuantize: axes, levels


def add_negative(subtract: Node) -> Node | None:
    """Instead of ``x - z``, which throws where the types differ, a relaxed ``x + (-z)``, which nothing matches: a Convert
    would become a layer of its own.
    """
    if not is_widened(subtract):
        return None
    negative = constant(-constant_above(subtract.input_value(1)), precision_of(subtract.input_value(1)))
    new = relaxed(
        "Add",
        [subtract.input_value(0), negative.output(0)],
        precision_of(subtract.output(0)),
        {"auto_broadcast": "numpy"},
    )
    new.set_friendly_name(subtract.get_friendly_name())
    replace_output(subtract.output(0), new.output(0))
    return new


def guard_negative(add: Node) -> Node | None:
    """A Clamp after the factor of ``x + y * -1``, which the plugin would make a ``x - y`` of that is not relaxed."""
    if len({precision_of(value) for value in add.input_values()}) == 1:
        return None
    factors = [value.get_node() for value in add.input_values() if value.get_node().get_type_name() == "Multiply"]
    constants = [constant_above(factor.input_value(1)) for factor in factors]
    negative = [
        each for each, values in zip(factors, constants, strict=True) if values is not None and (values == -1).all()
    ]
    return add if negative and all([guard_output(each) for each in negative]) else None


def guard_scale(layer: Node) -> Node | None:
    """A Clamp before the scale (`links.guard_output`): after the shift of a MatMul, which the plugin else would multiply by
    the scale, and round once more.
    """
    readers = readers_of(layer)
    shifts = (
        len(readers) == 1 and layer.get_type_name() == "MatMul" and readers[0].get_type_name() in ("Add", "Subtract")
    )
    last = readers[0] if shifts and constant_above(readers[0].input_value(1)) is not None else layer
    return layer if guard_output(last) else None


def scale_in_f32_before_weights(multiply: Node) -> Node | None:
    """A Convert (`element_types.scale_in_f32`) only where a constant Multiply stands directly before a layer with
    weights, or multiplies an output by one; elsewhere the Convert is a layer.
    """
    is_real = precision_of(multiply.input_value(0)) in REAL
    needed = is_widened(multiply) if is_real else meets_weights(multiply)
    if needed or (is_output(multiply.output(0)) and would_be_dropped(multiply)):
        return convert_data(multiply, opset1.multiply)
    return None


def keep_weights_zero_point(node: Node) -> Node | None:
    """Integer weights less their zero point would be folded to floats, and the layer read integers in a float kernel.

    A relaxed Subtract whose own type is i16 is not folded, since it has no value of that type. Signed numbers would be
    added with the other sign in their own type, and saturate; in u8 they stay.
    """
    subtract = node.input_value(1).get_node()
    values = [value.get_node() for value in subtract.input_values()]
    if not is_relaxed(subtract) or not all(isinstance(each, Constant) for each in values):
        return None
    if any(precision_of(each.output(0)) not in INT8 for each in values):
        return None
    shift = 128 if any(precision_of(each.output(0)) == "i8" for each in values) else 0
    integers = [values_of(each).astype(np.int32) + shift for each in values]
    if min(each.min() for each in integers) < 0 or max(each.max() for each in integers) > 255:
        return None
    inputs = [constant(each, "u8").output(0) for each in integers]
    kept = relaxed("Subtract", inputs, precision_of(subtract.output(0)), subtract.get_attributes(), origin="i16")
    kept.set_friendly_name(subtract.get_friendly_name())
    node.input(1).replace_source_output(kept.output(0))
    return node


_PERIODIC = ("Cos", "Sin")


def quantizes_input(node: Node, model: Model) -> bool:
    """Whether a FakeQuantize reads an input of the model, in f32, or makes integers of a sine or cosine, which the plugin computes
    in f32; real values would be converted to f16 between it and what reads them. An input of a body stands for what is
    inside, in f16.
    """
    if node.get_type_name() != "FakeQuantize":
        return False
    source = node.input_value(0)
    kind = source.get_node().get_type_name()
    is_input = kind == "Parameter" and model.get_parameter_index(source.get_node()) >= 0
    is_wave = kind in _PERIODIC and not is_real(precision_of(node.output(0)))
    return (is_input or is_wave) and precision_of(source) == "f32"


def read_input_in_f32(node: Node) -> None:
    """Let a FakeQuantize read f32, and report f16 where it reports f32.

    In f16 a Convert follows each input, which only the plugin's own LPT fuses into a FakeQuantize. One that reads
    an input is marked to stay in f32, and no Convert is put there.
    """
    stored = precision_of(node.output(0))
    reported = "f16" if stored == "f32" else stored
    new = relaxed("FakeQuantize", node.input_values(), reported, node.get_attributes(), in_f32=True)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0) if reported == stored else opset1.convert(new, stored).output(0))


def transpose_before_quantization(node: Node) -> Node | None:
    """``MatMul(x, FakeQuantize(y))`` as ``MatMul(x, FakeQuantize(y.T), transpose_b)``, where all axes but two have size 1.

    MatMulConstTransposesExtraction takes such a FakeQuantize for weights, whatever it reads, and makes a Transpose after
    it and a MatMul that is not relaxed.
    """
    quantize, attributes = node.input_value(1).get_node(), node.get_attributes()
    if not _looks_like_weights(node):
        return None
    rank = len(shape_of(node.input_value(1)))
    inputs = [_with_last_axes_swapped(value, rank) for value in quantize.input_values()]
    turned = relaxed_like(quantize, inputs, precision_of(quantize.output(0)))
    new = relaxed(
        "MatMul",
        [node.input_value(0), turned.output(0)],
        precision_of(node.output(0)),
        {**attributes, "transpose_b": True},
    )
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def guard_second_factor(node: Node) -> Node | None:
    """The same of floats: a Clamp that changes nothing stands between. The plugin would forget the Transpose."""
    factor = node.input_value(1)
    if not _looks_like_weights(node) or not is_real(precision_of(factor)) or is_constant_path(factor.get_node()):
        return None
    if None in shape_of(factor):
        return None
    clamp = opset1.clamp(factor, -FLOAT_MAX, FLOAT_MAX)
    clamp.set_friendly_name(made_for(factor.get_node().get_friendly_name(), Made.GUARD))
    node.input(1).replace_source_output(clamp.output(0))
    return node


def _looks_like_weights(node: Node) -> bool:
    shape = shape_of(node.input_value(1))
    if node.input_value(1).get_node().get_type_name() != "FakeQuantize" or node.get_attributes()["transpose_b"]:
        return False
    return shape is not None and len(shape) > 1 and sum(size != 1 for size in shape) <= 2


def _with_last_axes_swapped(value: Output, rank: int) -> Output:
    """A tensor of this rank, or a constant that is broadcast to it."""
    values = constant_above(value)
    if values is not None and values.size == 1:
        return value
    order = np.array([*range(rank - 2), rank - 1, rank - 2], np.int64)
    if values is None:
        return opset1.transpose(value, constant(order, "i64")).output(0)
    whole = values.reshape((1,) * (rank - values.ndim) + values.shape)
    return constant(whole.transpose(order), precision_of(value)).output(0)


def quantize_vector_as_row(node: Node) -> Node | None:
    """A FakeQuantize of a vector whose ends differ by element, or would after the plugin has fused the arithmetic before it,
    between two Reshapes.

    The plugin reads a vector as a batch, and the bounds per channel: wrong numbers, with its own LPT too.
    """
    if len(shape_of(node.output(0)) or ()) != 1:
        return None
    source, constants = node.input_value(0).get_node(), [constant_above(end) for end in node.input_values()[1:]]
    if source.get_type_name() in ARITHMETIC:
        constants += [values for values in map(constant_above, source.input_values()) if values is not None]
    if all(values is not None and values.size == 1 for values in constants):
        return None
    inputs = [opset1.reshape(node.input_value(0), constant(np.array([1, -1]), "i64"), False).output(0)]
    inputs += node.input_values()[1:]
    row = same_on(node, inputs)
    vector = opset1.reshape(row.output(0), constant(np.array([-1]), "i64"), False)
    row.set_friendly_name(made_for(node.get_friendly_name(), Made.ROW))
    vector.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), vector.output(0))
    return row


def quantize_over_three_axes(node: Node) -> Node | None:
    """A FakeQuantize of five axes or more whose interval differs along a spatial axis, between two Reshapes.

    For up to 256 levels the plugin prepares scales and shifts, of which the kernel of such a shape reads others than were
    written: wrong numbers or none, with its own LPT too.
    """
    details, shape = QuantizationDetails.of(node), shape_of(node.output(0))
    if details is None or shape is None or len(shape) < _MANY_AXES or details.levels > _OF_8_BITS:
        return None
    ends = [end.reshape((1,) * (len(shape) - end.ndim) + end.shape) for end in details.intervals]
    varied = [axis for axis in range(len(shape)) if any(end.shape[axis] != 1 for end in ends)]
    if not varied or varied[-1] < 2:  # by channel
        return None
    first, last = min(varied[0], 1), varied[-1] + 1
    if None in shape[first:last]:
        return in_steps(node, details)
    inner = (1,) * first + shape[first:last]
    columns = [np.broadcast_to(end.reshape(end.shape[:last]), inner).reshape(1, -1, 1) for end in ends]
    data, batch = node.input_value(0), 0 if first else 1  # 0: the size that it has
    flat = opset1.reshape(data, constant(np.array([batch, math.prod(inner), -1]), "i64"), True)
    new = same_on(node, [flat.output(0), *(constant(end).output(0) for end in columns)])
    sizes = opset8.shape_of(data, "i64") if None in shape else constant(np.array(shape), "i64")
    back = opset1.reshape(new, sizes, False)
    new.set_friendly_name(made_for(node.get_friendly_name(), Made.RANK_3))
    back.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), back.output(0))
    return back


def lay_slopes_along_channels(node: Node) -> Node | None:
    """A vector of slopes in the shape that it is broadcast from, ``[1, C, 1, 1]`` for an image.

    In a model with dynamic sizes the plugin reads other slopes of a vector than those of the channel: wrong numbers, with
    its own LPT and in a network of floats, too.
    """
    shape, slopes = shape_of(node.input_value(0)), constant_above(node.input_value(1))
    if shape is None or len(shape) < 2 or slopes is None or slopes.ndim != 1 or slopes.size == 1:
        return None
    axis = 1 if shape[1] in (None, slopes.size) else len(shape) - 1
    whole = slopes.reshape([slopes.size if each == axis else 1 for each in range(len(shape))])
    node.input(1).replace_source_output(constant(whole, precision_of(node.input_value(1))).output(0))
    return node


def shift_open_row(node: Node) -> Node | None:
    """A shift of ``[1, ?]`` by a constant that tells its size, between two Reshapes, of three axes.

    The plugin takes the constant for a bias, and counts the numbers of a row whose size it does not know, which throws, in
    float too.
    """
    data, shape = node.input_value(0), shape_of(node.output(0))
    if shape_of(data) != (1, None) or shape is None or None in shape or constant_above(node.input_value(1)) is None:
        return None
    wide = same_on(node, [reshaped(data, (1, 1, None)).output(0), node.input_value(1)])
    row = reshaped(wide.output(0), shape)
    wide.set_friendly_name(made_for(node.get_friendly_name(), Made.RANK_3))
    row.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), row.output(0))
    return wide


def quantize_outputs_apart(node: Node) -> Node | None:
    """A FakeQuantize of an output of a recurrent layer after its first: the input end that is farther from 0 is the next
    number that f32 has.

    Of dynamic sizes the plugin makes a loop of the layer, and takes equal quantizations of two outputs for one, whatever
    stands before them: the states of all steps would be those of the last.
    """
    layer, number = node.input_value(0).get_node(), node.input_value(0).get_index()
    if layer.get_type_name() not in RECURRENT or number == 0:
        return None
    ends = [constant_above(node.input_value(port)) for port in (1, 2)]
    if any(values is None or precision_of(node.input_value(1)) != "f32" for values in ends):
        return None
    port = 1 if np.abs(ends[0]).max() > np.abs(ends[1]).max() else 2
    moved = ends[port - 1]
    for _ in range(number):
        moved = np.nextafter(moved, np.float32(-np.inf if port == 1 else np.inf), dtype=np.float32)
    node.input(port).replace_source_output(constant(moved, "f32").output(0))
    return node


def hide_end(node: Node) -> Node | None:
    """The highest output value of a FakeQuantize after a Reshape, which the plugin folds after it has looked for
    quantization (`hide_from_lpt`). It has no kernel for an end that it finds out later; code that folds constants before it
    compiles the model sets its LPT off.
    """
    value = node.input_value(4)
    if not isinstance(value.get_node(), Constant):
        return None
    shape = constant(np.array(shape_of(value), np.int64), "i64")
    node.input(4).replace_source_output(opset1.reshape(value, shape, False).output(0))
    return node


def run_groups_over_two_axes(model: Model) -> list[Node]:
    """Groups of several channels over one axis, as over a row of an image, where some size of the model is open.

    There the plugin reads their weights wrongly until it has a kernel for the size at hand, some inferences later, or
    throws; with its own LPT and in a network of floats, too.
    """
    if not model.is_dynamic():
        return []
    return [node for each in model.get_ordered_ops() if (node := _over_two_axes(each)) is not None]


def _over_two_axes(layer: Node) -> Node | None:
    if layer.get_type_name() != "GroupConvolution" or len(shape_of(layer.input_value(0)) or ()) != 3:
        return None
    weights, sizes = layer.input_value(1), shape_of(layer.input_value(1))
    if sizes is None or sizes[1:3] == (1, 1):
        return None

    def takes(value: Output) -> bool:
        return is_constant(value) and len(value.get_shape()) != 2

    chain, attributes = chain_after(layer, ON_A_GPU, takes), layer.get_attributes()
    for name, of_one_column in (("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)):
        attributes[name] = [of_one_column, *attributes[name]]
    inputs = [_as_image(layer.input_value(0)), _as_image(weights, axis=3)]
    if is_relaxed(layer):
        new = relaxed(layer.get_type_name(), inputs, precision_of(layer.output(0)), attributes)
    else:
        new = NodeFactory("opset1").create(layer.get_type_name(), inputs, attributes)
    new.set_friendly_name(layer.get_friendly_name())
    return between_reshapes(chain, new, lambda shape: _with_one(shape) if len(shape) == 3 else shape, Made.TWO_AXES)


def _as_image(value: Output, axis: int = 2) -> Output:
    """With an axis of size 1 more; before a zero point, which has to stand directly before the layer."""
    node, shape = value.get_node(), _with_one(shape_of(value), axis)
    if is_constant(value):
        return constant(values_of(node).reshape(shape), precision_of(value)).output(0)
    if node.get_type_name() not in ("Add", "Subtract") or not is_relaxed(node):
        return reshaped(value, shape).output(0)
    inputs = [each if len(shape_of(each) or ()) < axis else _as_image(each, axis) for each in node.input_values()]
    return same_on(node, inputs).output(0)


def _with_one(shape: Shape, axis: int = 2) -> Shape:
    return *shape[:axis], 1, *shape[axis:]
