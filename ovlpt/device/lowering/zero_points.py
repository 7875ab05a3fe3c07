"""Relaxed Subtracts: zero points, which the plugin fuses into layers, merges and moves."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ovlpt.device.lowering.element_types import convert_data, follows_constant, is_widened, repeats_data
from ovlpt.device.lowering.kernels import BLOCK, has_zero_point, is_padded, is_pointwise, lacks_reorder
from ovlpt.device.lowering.links import BEFORE_INTERVAL, block_fusion, is_zero_point_before_floats
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import (
    constant,
    constant_above,
    converted,
    is_constant_above,
    is_real,
    precision_of,
    same_operation,
    values_of,
)
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import is_for_recurrent_layer
from ovlpt.graph.relaxed import WITHOUT_AMX, is_relaxed, kernels_of, relaxed, relaxed_like
from ovlpt.graph.replaced import detach
from ovlpt.graph.shapes import may_be_open, reshaped, shape_of
from ovlpt.layer_transformation import move_tensor_names, replace_output
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, opset1
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC, PASSES_ON
from ovlpt.operations.values import is_scalar_like
from ovlpt.precisions import INT8

# Elementwise arithmetic of one or two inputs, and what becomes such, through which a stride is moved up
_MOVED_THROUGH = ARITHMETIC | (ACTIVATIONS - {"Swish"}) | {
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormInference", "Ceiling", "Clamp", "Cos", "Cosh", "Erf",
    "Exp", "Floor", "FloorMod", "Log", "Maximum", "Minimum", "Mod", "Negative", "Power", "Relu", "Round", "Sign", "Sin",
    "Sinh", "SoftSign", "Sqrt", "SquaredDifference", "Tan",
}  # fmt: skip

_COPIES = PASSES_ON | {"Gather", "MaxPool", "Pad"}
_MARKS = {  # of common optimizations, which no file keeps
    "Convert": "DisableConstantFolding_0", "Multiply": "dequantization_node_0", "Subtract": "dequantization_node_0",
}  # fmt: skip
_PADDED = 16  # channels


def subtract_in_f32(subtract: Node) -> Node | None:
    """A relaxed Subtract of an integer or f16 tensor and an f32 constant throws; it gets a Convert. So does the zero
    point of a layer whose weights are not integers: as a post-operation of dynamic sizes it ends the process. Only there: a
    Convert before every zero point or residual Add loses the int8 fusion. Where it is no post-operation, an Add of its negative
    reads the integers: the Convert would be a layer of its own.
    """
    if is_widened(subtract):
        _scale_in_f64(subtract)
        return convert_data(subtract, opset1.subtract)
    if not is_zero_point_before_floats(subtract):
        return None
    data, zero_point = subtract.input_value(0), constant_above(subtract.input_value(1))
    if precision_of(data) in INT8 and _is_stored(data, zero_point):
        add = _negative_added(subtract, data, zero_point)
        replace_output(subtract.output(0), add.output(0))
        return add
    plain = opset1.subtract(opset1.convert(data, "f32"), constant(zero_point))
    plain.set_friendly_name(subtract.get_friendly_name())
    replace_output(subtract.output(0), plain.output(0))
    return plain


def _is_stored(data: Output, zero_point: np.ndarray) -> bool:
    """Whether what gives these integers takes no zero point in as a post-operation."""
    node = data.get_node()
    if (kind := node.get_type_name()) == "Concat" or (kind == "MaxPool" and is_scalar_like(zero_point)):
        return True
    if kind == "FakeQuantize" and node.input_value(0).get_node().get_type_name() == "Parameter":
        return True
    if is_constant_above(data):
        return False
    readers = [target.get_node() for target in data.get_target_inputs()]
    return any(reader.get_type_name() != "ShapeOf" and not _shifts_before_floats(reader) for reader in readers)


def _shifts_before_floats(node: Node) -> bool:
    """Whether it is a zero point of layers in float, which the plugin merges with equal ones, or was one."""
    is_added = node.get_type_name() == "Add" and is_constant_above(node.input_value(1))
    return is_added or is_zero_point_before_floats(node)


def _scale_in_f64(subtract: Node) -> None:
    """Whole numbers less a whole zero point are exact, and so is their scale but for one rounding. The plugin would make
    ``x * s - z * s`` of it, which is off by the rounding of ``z * s``, unless the scale is in f64.
    """
    readers, zero_point = readers_of(subtract), constant_above(subtract.input_value(1))
    if len(readers) != 1 or readers[0].get_type_name() != "Multiply" or zero_point is None:
        return
    scale = constant_above(readers[0].input_value(1))
    if precision_of(subtract.input_value(0)) not in INT8 or scale is None:
        return
    if not np.isfinite(zero_point).all() or (zero_point % 1).any():
        return
    old = readers[0]
    if is_relaxed(old) or precision_of(old.output(0)) != "f32":
        return
    if any(reader.get_type_name() in BEFORE_INTERVAL | {"FakeQuantize"} for reader in readers_of(old)):
        return  # scale and zero point become part of its interval
    _multiply_in_f64(old, old.input_value(0), scale, Made.SCALE)


def _multiply_in_f64(multiply: Node, data: Output, scale: np.ndarray, made: Made) -> Node:
    """Let a product in f64 of ``data`` stand for one in f32, which reads nothing any more; its Convert."""
    wide = opset1.multiply(converted(data, "f64"), constant(scale, "f64"))
    back = opset1.convert(wide, "f32")
    wide.set_friendly_name(made_for(multiply.get_friendly_name(), made))
    back.set_friendly_name(multiply.get_friendly_name())
    replace_output(multiply.output(0), back.output(0))
    detach(multiply)
    return back


def add_zero_point(subtract: Node) -> Node | None:
    """The zero point of integers that only arithmetic reads, as a relaxed Add of its negative, with its scale in f64.

    A Subtract of f32 from integers would need a Convert (`subtract_in_f32`), which is a layer of its own where floats are
    bf16, and equal ones of several readers would be merged: floats would be stored in place of integers. No fusion
    reaches the Add through the scale (`scales.compute_scale_in_f64`), and both become part of what reads them. What differs
    by place after a Transpose, as the positions of patches, or repeats its data, needs no scale: nothing takes it into an
    interval, and a Convert would be moved before the Transpose, which then moves floats.
    """
    if not is_widened(subtract):
        return None
    return _add_by_place(subtract) or _add_zero_point(subtract, subtract.input_value(0))


def _add_by_place(subtract: Node) -> Node | None:
    data, shift = subtract.input_value(0), constant_above(subtract.input_value(1))
    readers = {reader.get_type_name() for reader in readers_of(subtract)}
    if precision_of(data) not in INT8 or shift is None or readers != {"FakeQuantize"}:
        return None
    is_turned = data.get_node().get_type_name() == "Transpose" and sum(size > 1 for size in shift.shape) > 1
    if not (is_turned or repeats_data(subtract)):
        return None
    add = _negative_added(subtract, data, shift)
    replace_output(subtract.output(0), add.output(0))
    return add


def _negative_added(subtract: Node, data: Output, zero_point: np.ndarray, siblings: int = 0) -> Node:
    """A relaxed Add, of the name of the Subtract that it stands for."""
    inputs = [data, constant(-zero_point).output(0)]
    add = relaxed("Add", inputs, "f32", {"auto_broadcast": "numpy"}, siblings=siblings)
    add.set_friendly_name(subtract.get_friendly_name())
    return add


def add_zero_point_of_floats(subtract: Node) -> Node | None:
    """The same of integers that are converted to f32 and scaled, but for recurrent layers, which the plugin's own LPT forms."""
    readers, data = readers_of(subtract), subtract.input_value(0)
    if is_relaxed(subtract) or any(map(is_relaxed, readers)) or any(map(is_for_recurrent_layer, readers)):
        return None
    while data.get_node().get_type_name() == "Convert":
        data = data.get_node().input_value(0)
    return _add_zero_point(subtract, data) if constant_above(data) is None else None


def _add_zero_point(subtract: Node, data: Output) -> Node | None:
    (multiply,) = readers if len(readers := readers_of(subtract)) == 1 else (subtract,)
    if precision_of(data) not in INT8 or multiply.get_type_name() != "Multiply":
        return None
    zero_point, scale = (constant_above(node.input_value(1)) for node in (subtract, multiply))
    if zero_point is None or scale is None or precision_of(multiply.output(0)) != "f32":
        return None
    if follows_constant(data, ("Add", "Subtract")):
        return None  # the plugin would merge the two, of integers and of floats, and throw
    # by channel they would become part of a layer before them
    is_apart = _is_apart(data) or repeats_data(subtract)
    if not is_apart and (zero_point.size > 1 or (scale.size > 1 and len(data.get_target_inputs()) == 1)):
        return None
    before = [target.get_node() for target in data.get_target_inputs() if target.get_node().get_type_name() == "Add"]
    add = _negative_added(subtract, data, zero_point, siblings=sum(map(is_relaxed, before)))
    back = _multiply_in_f64(multiply, add.output(0), scale, Made.F64)
    if scale.size > 1:
        block_fusion(back)  # rules that keep an interval from scales by channel do not look for those in f64
    return add


def _is_apart(data: Output) -> bool:
    """Whether it is no result of a layer that takes in constants by channel. At fixed sizes a pool and a Reshape would leave
    more layers than with a Convert, which is none there.
    """
    node, apart = data.get_node(), {"Concat", "Pad", "Transpose"}
    if may_be_open(data):
        apart |= {"AvgPool", "FakeQuantize", "MaxPool"}
        if node.get_type_name() == "Reshape":
            node = node.input_value(0).get_node()
    return node.get_type_name() in apart


def subtract_signed_in_f32(subtract: Node) -> Node | None:
    """A zero point of i8 data is subtracted in i8, which saturates: wrong numbers, no error. No kernel takes one, only
    those of u8 data; it is subtracted in f32.
    """
    data, zero_point = subtract.input_values()
    if not precision_of(data) == precision_of(zero_point) == "i8" or constant_above(data) is not None:
        return None  # weights are folded
    plain = opset1.subtract(*(opset1.convert(value, "f32") for value in (data, zero_point)))
    plain.set_friendly_name(subtract.get_friendly_name())
    replace_output(subtract.output(0), plain.output(0))
    return plain


def broadcast_before_zero_point(subtract: Node) -> Node | None:
    """A Broadcast before a zero point would be left out, since the zero point makes up for it. The layer then has a
    zero point of more channels than its data, and throws, or runs in float. A Broadcast to the shape of its own data
    goes; a Tile of one axis does the same as the Broadcast; other Broadcasts go before the FakeQuantize, or where
    something else reads that, a Clamp keeps the zero point after them.
    """
    broadcast = subtract.input_value(0).get_node()
    if broadcast.get_type_name() != "Broadcast" or precision_of(subtract.input_value(0)) not in INT8:
        return None
    if _is_shape_of(broadcast.input_value(1), broadcast.input_value(0)):
        replace_output(broadcast.output(0), broadcast.input_value(0))
        return subtract
    quantize, repeats = broadcast.input_value(0).get_node(), _repeats(broadcast)
    details = QuantizationDetails.of(quantize) if quantize.get_type_name() == "FakeQuantize" else None
    moves = details is not None and all(end.size == 1 for end in details.intervals)
    moves = moves and len(quantize.output(0).get_target_inputs()) == 1
    if repeats is not None and (len(repeats) - repeats.count(1) == 1 or not moves):
        _tile(broadcast, repeats)
    elif moves:
        replace_output(broadcast.output(0), quantize.output(0))
        broadcast.input(0).replace_source_output(quantize.input_value(0))
        broadcast.validate_and_infer_types()
        quantize.input(0).replace_source_output(broadcast.output(0))
        quantize.validate_and_infer_types()
    else:
        _clamp_between(broadcast, subtract)
    return subtract


def tile_before_scale(multiply: Node) -> Node | None:
    """A scale would be moved before a Broadcast of integers, and there be fused into the FakeQuantize, which then rounds real
    values to integers: wrong numbers, no error. After a Tile it stays, or where the shape is not known, after a Clamp.
    """
    broadcast = multiply.input_value(0).get_node()
    if broadcast.get_type_name() != "Broadcast" or precision_of(multiply.input_value(0)) not in INT8:
        return None
    if constant_above(multiply.input_value(1)) is None:
        return None
    if (repeats := _repeats(broadcast)) is None:
        _clamp_between(broadcast, multiply)
    else:
        _tile(broadcast, repeats)
    return multiply


def _clamp_between(broadcast: Node, reader: Node) -> None:
    """The plugin moves what has two inputs, and only that."""
    ends = np.iinfo(broadcast.get_output_element_type(0).to_dtype())
    clamp = opset1.clamp(broadcast.output(0), float(ends.min), float(ends.max))
    clamp.set_friendly_name(made_for(broadcast.get_friendly_name(), Made.GUARD))
    reader.input(0).replace_source_output(clamp.output(0))


def _tile(broadcast: Node, repeats: list[int]) -> None:
    """Let a Tile stand for a Broadcast."""
    wide = opset1.tile(broadcast.input_value(0), constant(np.array(repeats), "i64"))
    if (settled := shape_of(broadcast.output(0))) != shape_of(wide.output(0)):  # its target names a dynamic size
        sizes = [0 if size is None else size for size in settled]
        wide = opset1.reshape(wide, constant(np.array(sizes), "i64"), True)
    wide.set_friendly_name(broadcast.get_friendly_name())
    replace_output(broadcast.output(0), wide.output(0))


def _is_shape_of(target: Output, data: Output) -> bool:
    """Whether ``target`` is the shape of ``data``, or the larger of that and itself."""
    node = target.get_node()
    if node.get_type_name() == "ShapeOf":
        return node.input_value(0) == data
    return node.get_type_name() == "Maximum" and all(_is_shape_of(value, data) for value in node.input_values())


def _repeats(broadcast: Node) -> list[int] | None:
    """By axis, how often a Broadcast repeats its data; None where that is not known before the data is."""
    target = broadcast.input_value(1).get_node()
    before, after = (shape_of(value) for value in (broadcast.input_value(0), broadcast.output(0)))
    if None in (before, after) or len(before) != len(after) or broadcast.get_attributes()["mode"].lower() == "explicit":
        return None
    wanted = (
        values_of(target) if isinstance(target, Constant) and len(before) == target.data.size else [None] * len(before)
    )
    repeats = [
        1 if given == result is not None or size == 1 else result if given == 1 else None
        for given, result, size in zip(before, after, wanted, strict=True)
    ]
    return None if None in repeats else repeats


def clamp_after_zero_point(clamp: Node) -> Node | None:
    """A dequantization that follows a Clamp does not look like one to the plugin, which multiplies it out: the real zero
    becomes a rounding error beside 0, on which a comparison, a logarithm or a root depends. It goes before a Clamp of its
    own, with the integers; the bounds are real again.
    """
    if is_real(precision_of(clamp.input_value(0))):
        return None
    direct = readers_of(clamp)
    narrowed = [each for reader in direct if reader.get_type_name() == "Convert" for each in readers_of(reader)]
    moved = [_clamp_dequantized(clamp, reader) for reader in (*direct, *narrowed)]
    return clamp if any(moved) else None


def _clamp_dequantized(clamp: Node, subtract: Node) -> bool:
    """Where ``subtract`` and a Multiply dequantize what a Clamp gives, let them dequantize what it reads; whether."""
    (multiply,) = readers if len(readers := readers_of(subtract)) == 1 else (subtract,)
    if (subtract.get_type_name(), multiply.get_type_name()) != ("Subtract", "Multiply"):
        return False
    zero_point, scale = (constant_above(node.input_value(1)) for node in (subtract, multiply))
    if any(values is None or not is_scalar_like(values) for values in (zero_point, scale)):
        return False
    ends = (clamp.get_attributes()[end] for end in ("min", "max"))
    low, high = sorted((end - float(zero_point.flat[0])) * float(scale.flat[0]) for end in ends)
    wide = opset1.convert(clamp.input_value(0), precision_of(subtract.input_value(1)))
    subtract.input(0).replace_source_output(wide.output(0))
    scaled, targets = multiply.output(0), multiply.output(0).get_target_inputs()
    real = opset1.clamp(scaled, low, high)
    real.set_friendly_name(multiply.get_friendly_name())
    multiply.set_friendly_name(made_for(real.get_friendly_name(), Made.SCALE))
    for target in targets:
        target.replace_source_output(real.output(0))
    move_tensor_names(scaled, real.output(0))
    return True


def sibling_numbers(model: Model) -> dict[int, int]:
    """By instance of a relaxed Subtract, how many others of the same tensor, or of copies of it, come before it.

    Two equal zero-point Subtracts on one tensor are merged, and the plugin then drops the zero point of the second
    convolution: wrong numbers, no error. Siblings get input type lists of different lengths, which keeps them apart.
    """
    siblings: dict[tuple, list[Node]] = defaultdict(list)
    for node in all_nodes(model):
        if node.get_type_name() == "Subtract" and is_relaxed(node):
            siblings[_source(node.input_value(0))].append(node)
    return {node.get_instance_id(): number for group in siblings.values() for number, node in enumerate(group)}


def _source(value: Output) -> tuple[int, int]:
    """What a tensor is copied from. The plugin merges equal copies, of which other rules give each layer one of its own, drops
    those that undo each other, and moves a Gather that permutes the channels of a layer past the zero point, into the weights.
    """
    while (node := value.get_node()).get_type_name() in _COPIES:
        value = node.input_value(0)
    return node.get_instance_id(), value.get_index()


def keep_apart(model: Model) -> list[Node]:
    """Each zero point after the first of its tensor gets a length of the input type list of its own."""
    numbers = sibling_numbers(model)
    if not any(numbers.values()):
        return []
    changed = [node for node in all_nodes(model) if numbers.get(node.get_instance_id())]
    for subtract in changed:
        output, number = precision_of(subtract.output(0)), numbers[subtract.get_instance_id()]
        apart = relaxed("Subtract", subtract.input_values(), output, {"auto_broadcast": "numpy"}, siblings=number)
        apart.set_friendly_name(subtract.get_friendly_name())
        replace_output(subtract.output(0), apart.output(0))
    return changed


def unmark_dequantization(model: Model) -> list[Node]:
    """Takes the marks of dequantizations, which common optimizations leave and no file keeps.

    Of a marked one in front of floats the plugin makes no multiplication and addition in one layer, which reads integers. And
    it does not fold the marked Convert of weights, or of their scales, that no kernel reads: with scales in f8e8m0 it throws.
    The plugin marks those that its kernels read by itself.
    """
    changed = [node for node in model.get_ops() if _is_marked(node)]
    for node in changed:
        del node.get_rt_info()[_MARKS[node.get_type_name()]]
    return changed


def _is_marked(node: Node) -> bool:
    mark = _MARKS.get(node.get_type_name())
    if mark is None or mark not in node.get_rt_info():
        return False
    return node.get_type_name() != "Convert" or isinstance(node.input_value(0).get_node(), Constant)


def tell_channels(convolution: Node) -> Node | None:
    """A Reshape of data with a zero point whose number of channels is open, to the channels that the layer reads.

    The zero point does not tell the one channel of a layer. Where it is open, the plugin does not take the zero point into the
    layer, which runs in float, and throws in bf16 where its result is quantized.
    """
    subtract, weights = convolution.input_value(0).get_node(), shape_of(convolution.input_value(1))
    if not has_zero_point(convolution) or not is_relaxed(subtract) or weights is None:
        return None
    sizes, axes = shape_of(subtract.output(0)) or (), len(convolution.get_attributes()["strides"])
    inputs = weights[-axes - 1]
    if sizes[1:2] != (None,) or inputs is None or len(weights) > axes + 2:
        return None
    data, zero_point = subtract.input_values()
    told = reshaped(data, (sizes[0], inputs, *sizes[2:]))
    new = relaxed_like(subtract, [told.output(0), zero_point], precision_of(subtract.output(0)))
    convolution.input(0).replace_source_output(new.output(0))
    return convolution


def pad_before_zero_point(convolution: Node) -> Node | None:
    """A convolution over three axes of space, in groups or of one channel, pads wrongly what has a zero point: wrong numbers,
    no error, with the plugin's own LPT too. A Pad before it puts the zero point there; where it differs between channels,
    padded or not, the layer runs in float. So it does where groups are of one channel, whose kernels with a zero point are of
    f32: with floats in bf16 compiling throws.
    """
    subtract, attributes = convolution.input_value(0).get_node(), convolution.get_attributes()
    begin, end = attributes["pads_begin"], attributes["pads_end"]
    if subtract.get_type_name() != "Subtract" or len(begin) != 3:
        return None
    zero_point, weights = constant_above(subtract.input_value(1)), shape_of(convolution.input_value(1))
    if zero_point is None or weights is None:
        return None
    if not (in_groups := convolution.get_type_name() == "GroupConvolution") and weights[1] != 1:
        return None
    if not is_scalar_like(zero_point) or (in_groups and weights[2] == 1):
        return _in_float(convolution)
    if not any((*begin, *end)) or attributes["auto_pad"].startswith("same"):
        return None
    data, pads = subtract.input_value(0), (constant(np.array([0, 0, *pad]), "i64") for pad in (begin, end))
    padded = opset1.pad(data, *pads, "constant", constant(zero_point.flat[0], precision_of(data)))
    return _on_other_data(convolution, padded, {"pads_begin": [0] * 3, "pads_end": [0] * 3, "auto_pad": "explicit"})


def pad_with_one_zero_point(convolution: Node) -> Node | None:
    """A layer of more than four channels, whose data have a zero point for each, and are padded, in float.

    The kernels that take such pad a block of channels, 8 with AVX2 and 16 with AVX-512, with the zero points of its first
    four: 8 to 60 % off, with the plugin's own LPT, too.
    """
    subtract, attributes = convolution.input_value(0).get_node(), convolution.get_attributes()
    if subtract.get_type_name() != "Subtract" or not is_padded(convolution):
        return None
    zero_point, shape = constant_above(subtract.input_value(1)), shape_of(convolution.input_value(1))
    if zero_point is None or shape is None or is_scalar_like(zero_point):
        return None
    channels = shape[-len(attributes["strides"]) - 1]
    return None if channels is not None and _repeats_in_blocks(zero_point.ravel(), channels) else _in_float(convolution)


def _repeats_in_blocks(zero_points: np.ndarray, channels: int) -> bool:
    """Whether those of each block of channels, of which a group has ``channels``, are the first four again and again."""
    groups = zero_points.reshape(-1, channels)
    blocks = [group[start : start + _PADDED] for group in groups for start in range(0, channels, _PADDED)]
    return all((block == np.resize(block[:BLOCK], block.size)).all() for block in blocks)


def read_float_weights(convolution: Node) -> Node | None:
    """Integer weights of a convolution of real numbers, in f32: its data have a zero point that no kernel subtracts, as beside
    weights of u8, or were converted.

    Where the result is quantized, the plugin looks for a kernel that reads the weights as they are stored. There is none of u8,
    nor in bf16 of i8: it throws.
    """
    data, weights = convolution.input_values()
    if not is_real(precision_of(data)) or precision_of(weights) not in INT8:
        return None
    if is_relaxed(data.get_node()) and precision_of(weights) == "i8":
        return None
    convolution.input(1).replace_source_output(converted(weights, "f32").output(0))
    return convolution


def pad_before_data(convolution: Node) -> Node | None:
    """A kernel of zeros before the first column of a layer whose data have a zero point, and are padded after it only.

    Without padding before the data a GPU's kernels take what is padded for 0, not for the zero point: wrong numbers, no
    error, with the plugin's own LPT too.
    """
    subtract, attributes = convolution.input_value(0).get_node(), convolution.get_attributes()
    if subtract.get_type_name() != "Subtract" or any(attributes["pads_begin"]) or not any(attributes["pads_end"]):
        return None
    return _with_kernel_of_zeros(convolution)


def _with_kernel_of_zeros(convolution: Node) -> Node | None:
    """A zero before the kernel's first column, which falls on padding that is one column more."""
    attributes, weights = convolution.get_attributes(), _with_zeros_first(convolution.input_value(1))
    if weights is None:
        return None
    *begin, last = attributes["pads_begin"]
    changed = {"pads_begin": [*begin, last + attributes["dilations"][-1]], "auto_pad": "explicit"}
    inputs, kind = [convolution.input_value(0), weights], convolution.get_type_name()
    new = relaxed(kind, inputs, precision_of(convolution.output(0)), attributes | changed)
    new.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), new.output(0))
    return new


def _with_zeros_first(weights: Output) -> Output | None:
    """Constant weights, or such less their zero point, with a zero before the first of the last axis."""
    node = weights.get_node()
    values = [each.get_node() for each in (node.input_values() if node.get_type_name() == "Subtract" else [weights])]
    if not all(isinstance(each, Constant) for each in values) or len(values) > 2:
        return None
    data, *zero_point = map(values_of, values)
    if zero_point and (zero_point[0].ndim != data.ndim or zero_point[0].shape[-1] != 1):
        return None
    zeros = np.broadcast_to(zero_point[0] if zero_point else data.dtype.type(0), (*data.shape[:-1], 1))
    wider = constant(np.concatenate([zeros, data], -1), precision_of(values[0].output(0))).output(0)
    if not zero_point:
        return wider
    return relaxed_like(node, [wider, node.input_value(1)], precision_of(node.output(0))).output(0)


def _on_other_data(convolution: Node, data: Node, changed: dict[str, object]) -> Node:
    """The convolution of ``data`` less the same zero point, with ``changed`` attributes."""
    subtract, kind = convolution.input_value(0).get_node(), convolution.get_type_name()
    subtract = relaxed_like(subtract, [data.output(0), subtract.input_value(1)], precision_of(subtract.output(0)))
    inputs, attributes = [subtract.output(0), convolution.input_value(1)], convolution.get_attributes() | changed
    new = relaxed(kind, inputs, precision_of(convolution.output(0)), attributes)
    new.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), new.output(0))
    return new


def keep_stride(convolution: Node) -> Node | None:
    """The stride of a 1×1 Convolution would be moved up through the Subtract of its zero point (StridesOptimization), as
    MaxPools of both of its inputs: the layer then runs in float. Through any elementwise operation the padding, its own or
    that of a 1×1 Convolution between, stays and comes to other cells: another shape, wrong numbers. Where it ends after an
    operation of several outputs, the MaxPool reads the first one: wrong numbers, or it throws. A grouped convolution, here of
    one group, keeps its stride, and has the same kernel.
    """
    if not _moves_stride(convolution):
        return None
    attributes, weights = convolution.get_attributes(), convolution.input_value(1)
    taps = reshaped(weights, (1, *shape_of(weights))).output(0)
    inputs, output = [convolution.input_value(0), taps], convolution.output(0)
    if is_relaxed(convolution):
        kernels = kernels_of(convolution) or (WITHOUT_AMX if lacks_reorder(convolution) else "")
        grouped = relaxed("GroupConvolution", inputs, precision_of(output), attributes, kernels=kernels)
    else:
        grouped = NodeFactory("opset1").create("GroupConvolution", inputs, attributes)
    grouped.set_friendly_name(convolution.get_friendly_name())
    replace_output(output, grouped.output(0))
    return grouped


def _moves_stride(convolution: Node) -> bool:
    """Whether a stride would be moved up through more than it may."""
    attributes = convolution.get_attributes()
    if not is_pointwise(convolution) or set(attributes["strides"]) == {1}:
        return False
    shifted = convolution.input_value(0).get_node().get_type_name() in ("Add", "Subtract")  # an Add on a GPU
    return _is_padded(convolution) or (shifted and is_relaxed(convolution)) or _meets_other_cells(convolution)


def _meets_other_cells(convolution: Node) -> bool:
    """Whether what a stride is moved up through is padded on the way, or has data from a node of several outputs, except the
    first of a Split or MaxPool: OpenVINO reads the first, or throws. Below a dequantization a MaxPool would be a layer more,
    where the plugin's own LPT has none.
    """
    pending, seen = [convolution.input_value(0)], set[int]()
    while pending:
        value = pending.pop()
        node = value.get_node()
        if value.get_index() > 0 or (node.get_output_size() > 1 and node.get_type_name() not in ("MaxPool", "Split")):
            return True
        if node.get_instance_id() in seen:
            continue
        if node.get_type_name() in ("Convert", "FakeQuantize") and seen:
            return True
        seen.add(node.get_instance_id())
        if node.get_type_name() in _MOVED_THROUGH:
            pending += node.input_values()
        elif node.get_type_name() == "Convolution" and is_pointwise(node):
            source = node.input_value(0)
            if _is_padded(node) and source.get_node().get_type_name() in (*_MOVED_THROUGH, "Convolution"):
                return True
            pending.append(source)
    return False


def _is_padded(convolution: Node) -> bool:
    attributes = convolution.get_attributes()
    return any((*attributes["pads_begin"], *attributes["pads_end"]))


def _in_float(convolution: Node) -> Node:
    """The convolution of integers as one of real numbers, its zero point subtracted in f32."""
    subtract = convolution.input_value(0).get_node()
    subtracted = opset1.subtract(*(opset1.convert(value, "f32") for value in subtract.input_values()))
    plain = same_operation(
        convolution, [subtracted.output(0), opset1.convert(convolution.input_value(1), "f32").output(0)]
    )
    plain.set_friendly_name(convolution.get_friendly_name())
    replace_output(convolution.output(0), plain.output(0))
    return plain
