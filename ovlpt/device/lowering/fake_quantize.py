"""FakeQuantize: what the plugin fuses into one, and into its intervals."""

from __future__ import annotations

from collections.abc import Set
from itertools import takewhile

import numpy as np

from ovlpt.device.int8_layers import is_int8_layer
from ovlpt.device.lowering.element_types import computes_in_f32
from ovlpt.device.lowering.links import (
    BEFORE_INTERVAL,
    MOVES_UP,
    POST_OPERATIONS,
    block_fusion,
    is_in_f64,
    is_zero_point_before_floats,
    links_above,
    merged_target,
    only_reader,
    other_constant,
)
from ovlpt.device.lowering.rows import takes_rows_for_columns
from ovlpt.device.lowering.scales import before_broadcast
from ovlpt.graph.constants import (
    constant,
    constant_above,
    converted,
    is_constant_above,
    is_constant_path,
    kept_apart,
    precision_of,
    same_operation,
)
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import dequantization_below, read_dequantization
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.names import Made, dequantization, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, relaxed, same_on
from ovlpt.graph.replaced import detach
from ovlpt.graph.shapes import may_be_open, shape_of
from ovlpt.graph.weights import folded_constant, varies_along
from ovlpt.layer_transformation import insert_after, replace_output
from ovlpt.openvino_api import Constant, Node, NodeFactory, Output, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, ARITHMETIC, CONVOLUTIONS, DECONVOLUTIONS, REARRANGES
from ovlpt.operations.values import is_scalar_like, is_whole
from ovlpt.precisions import INT8

# Reductions, before which a Transpose moves through a FakeQuantize
_REDUCTIONS = frozenset(
    f"Reduce{name}" for name in ("L1", "L2", "LogicalAnd", "LogicalOr", "Max", "Mean", "Min", "Prod", "Sum")
)
_ROWS, _COLUMNS = 64, 128  # of an attention
_LEVELS = 256  # of u8
# What the plugin computes in one layer with what stands before it, a dequantization too
_JOINED = ARITHMETIC | ACTIVATIONS - {"Mish", "SoftPlus"} | {"Abs", "Clamp", "Erf", "Exp", "FakeQuantize", "Relu"}
_MOVES_TRANSPOSE = _REDUCTIONS | {"Squeeze"}


def bypass_relu(node: Node) -> Node | None:
    """A Relu before a relaxed FakeQuantize over [0, …] would be fused into one that is not relaxed and reports floats:
    wrong numbers, no error. It does nothing there and is passed by. One with another reader is not fused so, and stays:
    a layer absorbs no Relu that it shares its result with. What lies between and changes nothing, as an Unsqueeze and a
    Squeeze, is dropped first.
    """
    if node.input_value(0).get_node().get_type_name() not in MOVES_UP | {"Relu"}:
        return None
    details, shape = QuantizationDetails.of(node), node.get_input_partial_shape(0)
    if details is None or (details.input_low < 0).any():
        return None
    reader, bypassed = node, False
    while (source := reader.input_value(0).get_node()).get_type_name() in MOVES_UP | {"Relu"}:
        kinds = {target.get_node().get_type_name() for target in source.output(0).get_target_inputs()}
        if source.get_type_name() == "Relu":
            # equal ones are merged, a ShapeOf is folded
            others = kinds - {reader.get_type_name(), "FakeQuantize", "Relu", "ShapeOf"}
            if others or source.get_output_partial_shape(0) != shape:
                break
            reader.input(0).replace_source_output(source.input_value(0))
            bypassed = True
        elif len(source.output(0).get_target_inputs()) > 1:
            break
        else:
            reader = source
    return node if bypassed else None


def join_dequantization(node: Node) -> Node | None:
    """``(FQ(x) - z) * s`` is a FakeQuantize with the output interval ``(low - z) * s``.

    On a GPU a Multiply that alone reads a relaxed FakeQuantize would be fused into its output interval, and real values
    then be integers (FakeQuantizeMulFusion), for which the next operation throws. On a CPU the integers would be stored
    and read again for nothing. Where only a dequantization reads them, both are one FakeQuantize of floats. What asks for
    their shape asks that of the floats: once known sizes are folded, the plugin would fuse the scale, too. So it is where a
    Broadcast or Tile repeats them before: fewer are scaled then.
    """
    shapes = [target for target in node.output(0).get_target_inputs() if target.get_node().get_type_name() == "ShapeOf"]
    for target in shapes:
        target.replace_source_output(node.input_value(0))
    joined = _joined(node)
    for target in shapes:
        target.replace_source_output((joined or node).output(0))
    return joined


def _joined(node: Node) -> Node | None:
    reader = only_reader(node)
    repeats = reader if reader is not None and reader.get_type_name() in ("Broadcast", "Tile") else None
    found = dequantization_below(repeats or node)
    if found.multiply is None or (details := QuantizationDetails.of(node)) is None:
        return None
    scale, zero_point = found.scale, np.zeros((), np.float32) if found.zero_point is None else found.zero_point
    if repeats is not None:
        scale, zero_point = (before_broadcast(values, repeats) for values in (scale, zero_point))
        if scale is None or zero_point is None:
            return None  # it differs between what is repeated
    shape = shape_of(node.output(0)) or (None,)
    mask = zero_point * scale if _is_mask(node, zero_point, scale) else None
    shift = zero_point if mask is None else np.zeros((), np.float32)
    if None in shape and not all(varies_along(values, len(shape), (1,)) for values in (scale, shift)):
        return None  # the plugin has no such FakeQuantize for dynamic sizes
    if found.multiply.get_output_partial_shape(0) != (repeats or node).get_output_partial_shape(0):
        return None  # the constants settle a size that is open in the data
    low, high = ((end - shift) * scale for end in (details.output_low, details.output_high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None  # the native library may add what overflows, and no interval has its ends there
    values = node.input_values()[:3]
    types = {precision_of(value) for value in values}
    if precision_of(found.multiply.output(0)) != "f32" or not types <= {"f16", "f32"}:
        return None
    wide = [value if precision_of(value) == "f32" else converted(value, "f32").output(0) for value in values]
    joined = last = opset1.fake_quantize(*wide, constant(low), constant(high), details.levels)
    if mask is not None:
        joined.set_friendly_name(node.get_friendly_name())
        last = opset1.add(joined, constant(-mask))
    _dequantized_as(last, repeats, found.multiply, node.get_friendly_name())
    return joined  # which later rules look at


def _dequantized_as(last: Node, repeats: Node | None, multiply: Node, name: str) -> None:
    """Let ``last``, or what repeats it, stand for a dequantization that ends in ``multiply``."""
    if repeats is not None:
        last.set_friendly_name(name)
        repeats.input(0).replace_source_output(last.output(0))
        repeats.validate_and_infer_types()
        last = repeats
    last.set_friendly_name(multiply.get_friendly_name())
    replace_output(multiply.output(0), last.output(0))
    detach(multiply)


def _is_mask(quantize: Node, zero_point: np.ndarray, scale: np.ndarray) -> bool:
    """Whether the zero point is what was added to the scores of an attention, different values for its columns.

    A MatMul of two tensors of integers reads an interval per column from elsewhere, in one Subgraph with what follows:
    wrong numbers, no error. A sum is right there.
    """
    if zero_point.size == 1 or scale.size > 1:
        return False
    product = links_above(quantize.input_value(0).get_node())[1]
    return product.get_type_name() == "MatMul" and not isinstance(product.input_value(1).get_node(), Constant)


def store_integers(node: Node) -> Node | None:
    """``FQ(x; low, high) == (FQ(x; 0, levels - 1) + low / s) * s`` after an int8 layer, for each of several readers.

    A layer stores what several operations read. In floats that takes four times the memory, and where floats are bf16
    the 8 bits of their fraction lose a part of each level. As integers it is exact, and the dequantization is part of
    the elementwise operations that read it, as in a Sigmoid and the product with what it is of. A reader that is a layer
    of another kind, or that another layer would take in, reads floats.
    """
    targets = node.output(0).get_target_inputs()
    if len(targets) < 2 or (grid := _grid(node)) is None:
        return None
    head = _head(node.input_value(0).get_node())
    if head is None or not is_int8_layer(head) or not _meet_again(node):
        return None
    low, scale, levels = grid
    stored = fake_quantize_node(node.input_value(0), _with_output(node, 0, levels - 1), levels, "u8")
    stored.set_friendly_name(node.get_friendly_name())
    for number, target in enumerate(targets):
        target.replace_source_output(_dequantized(stored, low / scale, scale, number))
    return stored


def _grid(node: Node) -> tuple[float, float, int] | None:
    """Lowest output, step and number of levels of a FakeQuantize of f32 that has one interval, if u8 holds the levels."""
    if {precision_of(value) for value in (*node.input_values(), *node.outputs())} != {"f32"}:
        return None
    details = QuantizationDetails.of(node)
    if details is None or not all(map(is_scalar_like, details.intervals)) or details.levels > _LEVELS:
        return None
    low, high = (float(end.flat[0]) for end in (details.output_low, details.output_high))
    return (low, (high - low) / (details.levels - 1), details.levels) if low < high else None


def _with_output(node: Node, low: float, high: float) -> list[Output]:
    """The ends of a FakeQuantize, with others of the output."""
    return [*node.input_values()[1:3], *(constant(np.float32(end)).output(0) for end in (low, high))]


def _dequantized(stored: Node, shift: float, scale: float, number: int) -> Output:
    """``(stored + shift) * scale``, which the plugin does not merge with that of another number."""
    data, name = stored.output(0), stored.get_friendly_name()
    for kind, value in (("Add", shift), ("Multiply", scale)):
        if value or kind == "Multiply":
            inputs = [data, constant(np.float32(value)).output(0)]
            part = relaxed(kind, inputs, "f32", {"auto_broadcast": "numpy"}, siblings=number)
            part.set_friendly_name(dequantization(f"{name}/{number}", kind))
            data = part.output(0)
    return data


def multiply_integers(node: Node) -> Node | None:
    """``x * FQ(y; low, high) == x * FQ(y; low / s, high / s) * s``, where a product alone reads what is quantized.

    The quantized factor is stored. Where floats are bf16, the 8 bits of their fraction lose a part of each level, but hold
    the integers; the scale is computed with the product.
    """
    targets = node.output(0).get_target_inputs()
    if len(targets) != 1 or (product := (target := targets.pop()).get_node()).get_type_name() != "Multiply":
        return None
    other = product.input_value(1 - target.get_index())
    if is_constant_path(other.get_node()) or is_relaxed(product):
        return None
    if {precision_of(value) for value in (other, product.output(0))} != {"f32"} or (grid := _grid(node)) is None:
        return None
    low, scale, levels = grid
    if not is_whole(low / scale):
        return None
    first = round(low / scale)
    stored = opset1.fake_quantize(node.input_value(0), *_with_output(node, first, first + levels - 1), levels)
    stored.set_friendly_name(node.get_friendly_name())
    target.replace_source_output(stored.output(0))
    name, readers = product.get_friendly_name(), product.output(0).get_target_inputs()
    product.set_friendly_name(made_for(name, Made.ALONE))
    scaled = opset1.multiply(product.output(0), constant(np.float32(scale)))
    scaled.set_friendly_name(name)
    insert_after(product.output(0), scaled.output(0), readers, [])
    return stored


def _meet_again(node: Node) -> bool:
    """Whether each reader is an elementwise operation that reads ``node`` and what is computed of it alone."""
    known, waiting = {node.get_instance_id()}, readers_of(node)
    first = {reader.get_instance_id() for reader in waiting}
    while waiting:
        ready = [each for each in waiting if _is_computed_of(each, known)]
        if not ready:
            return False
        known |= {each.get_instance_id() for each in ready}
        if first <= known:
            return True
        after = {each.get_instance_id(): each for done in ready for each in readers_of(done)}
        left = {each.get_instance_id(): each for each in waiting}
        waiting = [each for key, each in (left | after).items() if key not in known]
    return False


def _is_computed_of(node: Node, known: Set[int]) -> bool:
    if node.get_type_name() not in _JOINED or is_relaxed(node):
        return False
    return all(
        value.get_node().get_instance_id() in known or constant_above(value) is not None
        for value in node.input_values()
    )


def requantize_floats(node: Node) -> Node | None:
    """Integers of which only a zero point is subtracted, or that a Clamp cuts between two of them, before they are quantized
    again stay floats.

    ONNX Runtime quantizes a MatMul and its sum with the bias separately; the bias is then part of the zero point,
    the scale of the second FakeQuantize. PyTorch quantizes before a ReLU6 and after it. As floats all three are
    post-operations of the layer before them; integers would be stored, converted by a layer of their own and read by another.
    """
    if precision_of(node.output(0)) not in INT8 or precision_of(node.input_value(0)) != "f32":
        return None
    found, clamp = dequantization_below(node), only_reader(node)
    if clamp is not None and clamp.get_type_name() == "Clamp" and is_relaxed(clamp) and computes_in_f32(clamp):
        between = clamp
    elif found.subtract is not None and found.multiply is None:
        between = found.subtract
    else:
        return None
    if any(reader.get_type_name() != "FakeQuantize" for reader in readers_of(between)):
        return None
    rounded = opset1.fake_quantize(*node.input_values(), QuantizationDetails.of(node).levels)
    rounded.set_friendly_name(node.get_friendly_name())
    others = [constant(found.zero_point).output(0)] if between is found.subtract else []
    plain = same_operation(between, [rounded.output(0), *others])
    plain.set_friendly_name(between.get_friendly_name())
    replace_output(between.output(0), plain.output(0))
    detach(between)
    return rounded


def subtract_before_floats(node: Node) -> Node | None:
    """``FQ(x; low, high) - z == FQ(x; low - z, high - z)``, where only layers in float read the integers.

    Weights with a zero point, which do not fit i8, are real numbers; no kernel subtracts the zero point of data beside them.
    It would be a layer of its own, between integers that are stored and read again for nothing.
    """
    if precision_of(node.output(0)) not in INT8 or {*map(precision_of, node.input_values())} != {"f32"}:
        return None
    subtracts, details = readers_of(node), QuantizationDetails.of(node)
    if details is None or not subtracts or not all(map(is_zero_point_before_floats, subtracts)):
        return None
    if any(each.get_output_partial_shape(0) != node.get_output_partial_shape(0) for each in subtracts):
        return None
    shift, *others = (constant_above(each.input_value(1)) for each in subtracts)
    if not all(np.array_equal(shift, other) for other in others):
        return None
    if is_scalar_like(shift):
        shift = shift.ravel()[:1]
    elif not varies_along(shift, shift.ndim, (1,)) or max(end.size for end in details.intervals) == 1:
        return None  # rules of the layer before have seen no interval by channel
    low, high = (constant(end - shift) for end in (details.output_low, details.output_high))
    joined = opset1.fake_quantize(*node.input_values()[:3], low, high, details.levels)
    joined.set_friendly_name(node.get_friendly_name())
    for subtract in subtracts:
        replace_output(subtract.output(0), joined.output(0))
        detach(subtract)
    return joined


def keep_transpose(node: Node) -> Node | None:
    """``FQ(x; low, high) == FQ(x - low; 0, high - low)``

    A Transpose before a FakeQuantize and a reduction would be moved after them, and the channels to another axis, which
    with dynamic sizes throws. An Add keeps them apart until that is over, and then goes into the interval. A MatMul that reads
    the integers, too, would absorb the Transpose and no longer be relaxed: wrong numbers, or it throws. There the
    reduction reads floats.
    """
    data = node.input_value(0)
    if data.get_node().get_type_name() != "Transpose" or (details := QuantizationDetails.of(node)) is None:
        return None
    targets = {target: target.get_node().get_type_name() for target in node.output(0).get_target_inputs()}
    reductions = [target for target, kind in targets.items() if kind in _REDUCTIONS and target.get_index() == 0]
    if reductions and "MatMul" in targets.values():
        wide = opset1.convert(node.output(0), "f32")
        for target in reductions:
            target.replace_source_output(wide.output(0))
        return node
    by_channel = max(end.size for end in details.intervals) > 1 and precision_of(data) == "f32"
    if not by_channel or not set(targets.values()) & _MOVES_TRANSPOSE or not may_be_open(node.output(0)):
        return None
    low, high = details.input_low, details.input_high
    shifted = opset1.add(data, constant(-low))
    for port, value in enumerate((shifted, constant(np.zeros_like(low)), constant(high - low))):
        node.input(port).replace_source_output(value.output(0))
    return node


def differ_by_channel(node: Node) -> Node | None:
    """Let both interval ends of dynamic sizes differ between channels where per-channel scales or shifts will be folded into them.

    With dynamic sizes, per-channel scales and shifts that the plugin folds into the interval of a FakeQuantize without such
    are those of the first channel for all the others: wrong numbers, no error, with the plugin's own LPT too. The
    interval differs between channels from the start, by one step of f32, which decides its ties; where nothing that is folded
    differs between channels, nothing has to. So it is after transposed convolutions of fixed sizes, some of which have no
    int8 kernel. Of integers that no layer computes, and of a MatMul that would take such an interval for one of columns, a
    maximum with the least number keeps scales and shifts out of it: with the interval alone the FakeQuantize would be a layer
    that reads f32, between two Reorders, where scale, shift and interval are post-operations of one. After such a maximum
    nothing is folded, and an end of one number is one element: with AVX-512 the Subgraph of an attention has no registers for
    two ends by head.
    """
    if not may_be_open(node.output(0)) and not _is_after_transposed_convolution(node):
        return None
    details, rank = QuantizationDetails.of(node), node.get_output_partial_shape(0).rank
    if details is None or rank.is_dynamic:
        return None
    low, high = details.input_low, details.input_high
    if node.input_value(0).get_node().get_type_name() == "Maximum":
        return _with_single_ends(node, {1: low, 2: high})
    links = _taken_into_interval(node, low)
    constants = [low, high, *(values for link in links if (values := other_constant(link)) is not None)]
    channels = max((values.size for values in constants if not is_scalar_like(values)), default=1)
    by_channel = all(values.size == 1 or varies_along(values, rank.get_length(), (1,)) for values in constants)
    if channels == 1 or not by_channel or not (is_scalar_like(low) or is_scalar_like(high)):
        return None
    if links and (_is_of_integers(first := links[-1].input_value(0)) or takes_rows_for_columns(first.get_node())):
        block_fusion(links[0])
        return node
    if precision_of(node.input_value(1)) == "f16":
        node = _in_f32(node)
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)).max())
    for port, end, inwards in ((1, low, step), (2, high, -step)):
        if is_scalar_like(end):
            end = np.full((1, channels, *[1] * (rank.get_length() - 2)), end.flat[0], np.float32)
            end[0, 0] += inwards
            node.input(port).replace_source_output(constant(end).output(0))
    return node


def _with_single_ends(node: Node, ends: dict[int, np.ndarray]) -> Node | None:
    """One element for each end that is one number for all elements."""
    single = {port: end for port, end in ends.items() if end.size > 1 and is_scalar_like(end)}
    for port, end in single.items():
        one = constant(end.reshape(-1)[:1].reshape([1] * end.ndim), precision_of(node.input_value(port)))
        node.input(port).replace_source_output(one.output(0))
    return node if single else None


def _is_of_integers(data: Output) -> bool:
    return precision_of(data) in INT8 and not is_int8_layer(data.get_node())


def _taken_into_interval(node: Node, low: np.ndarray) -> list[Node]:
    """What the plugin may fold into the interval that begins at ``low``: nothing that others read; scale and bias of a layer
    go into that, unless its result is read elsewhere, too, and a Relu that stays keeps what is above it, as a sum of two
    tensors does. A per-channel interval without need is wrong after one element in bf16.
    """
    above, source = links_above(node.input_value(0).get_node())
    links = list(takewhile(lambda link: merged_target(link) is not None and not _is_of_two_tensors(link), above))
    is_next = len(links) == len(above)
    links += _of_transposed_convolution(source) if is_next else []
    if is_next and source.get_type_name() in CONVOLUTIONS:
        for kind in ("Multiply", "Add"):
            if links and links[-1].get_type_name() == kind and len(readers_of(source)) == 1:
                *links, source = links
    if is_next and links and _is_bias_of_product(links[-1]) and len(readers_of(source)) == 1:
        rest = [other_constant(link) for link in links[:-1]]
        links = links[:-1] if all(values is None or is_scalar_like(values) for values in rest) else links
    if (low < 0).any():
        links = list(takewhile(lambda link: link.get_type_name() != "Relu", links))
    return links


def _is_bias_of_product(link: Node) -> bool:
    """Whether what is added by column becomes part of the MatMul of floats by weights that gives the other term."""
    product, bias = link.input_value(0).get_node(), other_constant(link)
    if link.get_type_name() != "Add" or product.get_type_name() != "MatMul" or is_relaxed(product):
        return False
    rank, weights = product.get_output_partial_shape(0).rank, product.input_value(1)
    if rank.is_dynamic or bias is None or not is_constant_path(weights.get_node()):
        return False
    has_two_axes = weights.get_partial_shape().rank == 2
    return has_two_axes and varies_along(bias, rank.get_length(), (rank.get_length() - 1,))


def _is_of_two_tensors(link: Node) -> bool:
    return link.get_type_name() in ARITHMETIC and other_constant(link) is None


def _of_transposed_convolution(source: Node) -> list[Node]:
    """The scale and bias in f64 of a transposed convolution: without AVX-512, or an int8 kernel, the bias does not become
    part of the layer.
    """
    links, layer = _in_f64_above(source)
    return links if layer.get_type_name() in DECONVOLUTIONS else []


def _in_f64_above(node: Node) -> tuple[list[Node], Node]:
    """Scale and bias of a layer in f64, and the layer."""
    links: list[Node] = []
    while node.get_type_name() in ("Add", "Convert", "Multiply") and is_in_f64(node):
        links += [node] if node.get_type_name() != "Convert" else []
        node = node.input_value(0).get_node()
    return links, node


def _is_after_transposed_convolution(node: Node) -> bool:
    """Whether a FakeQuantize reads an int8 one, with what the plugin folds into the interval between."""
    layer = _in_f64_above(links_above(node.input_value(0).get_node())[1])[1]
    return layer.get_type_name() in DECONVOLUTIONS and is_int8_layer(layer)


def keep_scale_before(node: Node) -> Node | None:
    """With dynamic sizes a per-tensor FakeQuantize is moved up through a Transpose and the like, where it takes scales and
    shifts by channel as `differ_by_channel` tells. Nothing is moved through the maximum of them and the lowest number. Next
    to the FakeQuantize it takes what LPT has left there, unless a layer does, and reads it wrongly at all sizes. It is not
    moved through a sum of two tensors, whose scales may belong to a rotation of positions, which is one layer.
    """
    if not may_be_open(node.output(0)):
        return None
    details = QuantizationDetails.of(node)
    if details is None or not all(map(is_scalar_like, details.intervals)):
        return None
    links, head = links_above(node.input_value(0).get_node(), BEFORE_INTERVAL | MOVES_UP)
    is_moved, is_next = False, not _is_of_layer(head)
    for link in links:
        is_next = is_next and len(readers_of(link)) == 1
        if _is_of_two_tensors(link):
            return None
        if link.get_type_name() in MOVES_UP:
            is_moved = True
        elif (is_moved or is_next) and (values := other_constant(link)) is not None and not is_scalar_like(values):
            block_fusion(link)
            return node
    return None


def _is_of_layer(node: Node) -> bool:
    """Whether a layer gives the result, with what may be fused into it, quantizations and a scale in f64 among it. Nothing
    is fused into a layer that has other readers.
    """
    head = _head(node)
    return head is not None and head.get_type_name() in WEIGHTED and len(readers_of(head)) == 1


def _head(node: Node) -> Node | None:
    """What gives the result, with what may be fused into that; None where something else reads it on its way, too."""
    while node.get_type_name() in POST_OPERATIONS:
        data, *others = node.input_values()
        if any(constant_above(value) is None for value in others) or len(readers_of(node)) > 1:
            return None
        node = data.get_node()
    return node


def keep_after_transpose(node: Node) -> Node | None:
    """A per-channel interval would be moved up through a Transpose, to another axis, for which the plugin has no
    FakeQuantize (`compute_in_steps`). The maximum of what is transposed and the least number keeps it where it is.
    """
    source = node.input_value(0).get_node()
    if source.get_type_name() != "Transpose":
        return None
    details, rank = QuantizationDetails.of(node), node.get_output_partial_shape(0).rank
    if details is None or details.is_by_tensor or rank.is_dynamic:
        return None
    by_channel = all(varies_along(end, rank.get_length(), (1,)) for end in details.intervals)
    if not by_channel or folded_constant(node.input_value(0)) is not None:
        return None
    block_fusion(source)
    return node


def quantize_apart_from_attention(node: Node) -> Node | None:
    """A FakeQuantize to integers after an attention of few rows and many columns, between two Reshapes.

    In one Subgraph with both MatMuls of the attention, the first of which is in int8, it makes the second write beyond
    its memory: the process ends, with the plugin's own LPT too. This was seen with 8 to 32 rows and more than 128
    columns.
    """
    shape = shape_of(node.output(0))
    if shape is None or None in shape or len(shape) < 3 or shape[-2] >= _ROWS or shape[-1] <= _COLUMNS:
        return None
    details = QuantizationDetails.of(node)
    if precision_of(node.output(0)) not in INT8 or details is None or any(end.size > 1 for end in details.intervals):
        return None
    _, product = links_above(node.input_value(0).get_node())
    if product.get_type_name() != "MatMul" or is_relaxed(product):
        return None
    _, weights = links_above(product.input_value(0).get_node(), BEFORE_INTERVAL | {"FakeQuantize"})
    if weights.get_type_name() != "Softmax":
        return None
    # a form that no reader asks for, or the Reshapes would cancel each other
    alone, whole = (constant(np.array(each), "i64") for each in ([-1, 1, shape[-1]], shape))
    quantized = on_other_data(node, opset1.reshape(node.input_value(0), alone, False).output(0))
    result = opset1.reshape(quantized.output(0), whole, False)
    quantized.set_friendly_name(node.get_friendly_name())
    result.set_friendly_name(made_for(node.get_friendly_name(), Made.AGAIN))
    replace_output(node.output(0), result.output(0))
    return quantized


def on_other_data(quantize: Node, data: Output) -> Node:
    """The same FakeQuantize, of one interval, on other data. Its ends may have the rank of the data that it had, and the plugin
    would give that to its result.
    """
    ends = [constant(constant_above(end).reshape(()), precision_of(end)) for end in quantize.input_values()[1:]]
    return same_on(quantize, [data, *(end.output(0) for end in ends)])


def compute_in_steps(node: Node) -> Node | None:
    """An interval along another axis than the channels, as elementwise operations with the same numbers.

    The plugin has no FakeQuantize for it. It throws, or makes a post-operation of it that reads what lies after the
    interval in memory: wrong numbers, no error, with the plugin's own LPT too. Of a MatMul the columns are its channels,
    unless it multiplies two tensors of dynamic sizes, which fuses none, or dynamic sizes leave a Floor after it
    (`varies_by_rows`): the first interval is then that of all columns. Of an open rank nobody knows which axis has the
    channels once the model is reshaped.
    """
    details, rank = QuantizationDetails.of(node), node.get_output_partial_shape(0).rank
    if details is None or details.is_by_tensor:
        return None
    if rank.is_static and all(varies_along(end, rank.get_length(), (1,)) for end in details.intervals):
        return None
    if folded_constant(node.input_value(0)) is not None:
        return None
    links, source = links_above(node.input_value(0).get_node())
    by_columns = all(end.shape[-1:] == (end.size,) for end in details.intervals if end.size > 1)
    is_fused = by_columns and source.get_type_name() == "MatMul" and not _multiplies_open_tensors(source)
    if may_be_open(node.output(0)) and any(link.get_type_name() == "Floor" for link in links):
        is_fused = False
    if is_fused or (details.input_low >= details.input_high).any():
        return None
    return in_steps(node, details)


def in_steps(node: Node, details: QuantizationDetails) -> Node:
    """The same numbers by elementwise operations."""
    low, high, output_low, output_high = details.intervals
    steps = np.float32(details.levels - 1)
    data, precision = node.input_value(0), precision_of(node.output(0))
    if precision_of(data) != "f32":
        data = opset1.convert(data, "f32").output(0)
    # or a layer would take in the difference, along another axis
    apart = kept_apart(data)
    scaled = opset1.multiply(opset1.subtract(apart, constant(low)), constant(steps / (high - low)))
    clipped = opset1.clamp(scaled, 0.0, float(steps))
    level = NodeFactory("opset5").create("Round", [clipped.output(0)], {"mode": "half_to_even"})
    value = opset1.add(opset1.multiply(level, constant((output_high - output_low) / steps)), constant(output_low))
    if precision != "f32":
        value = opset1.convert(value, precision)
    value.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), value.output(0))
    return value


def _multiplies_open_tensors(product: Node) -> bool:
    return may_be_open(product.output(0)) and not is_constant_above(product.input_value(1))


def _in_f32(node: Node) -> Node:
    """A FakeQuantize of f16 data with an interval in f32; one that reports f16 between two Converts."""
    precision = precision_of(node.output(0))
    data, reported = opset1.convert(node.input_value(0), "f32"), precision if precision in INT8 else "f32"
    ends = [constant(constant_above(end)).output(0) for end in node.input_values()[1:]]
    wide = fake_quantize_node(data.output(0), ends, node.get_attributes()["levels"], reported)
    found = wide if reported == precision else opset1.convert(wide, precision)
    wide.set_friendly_name(made_for(node.get_friendly_name(), Made.F32))
    found.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), found.output(0))
    return wide


def dequantize_before_moves(multiply: Node) -> Node | None:
    """A dequantization that products in float alone read, past Reshapes and Transposes, as the interval of its FakeQuantize, before
    all of them: ``(transpose(FQ(x)) - z) * s == transpose(FQ'(x))``. So both products of an attention whose queries, keys and
    values have zero points read what is part of the layers before them.
    """
    readers = readers_of(multiply)
    if not readers or any(reader.get_type_name() != "MatMul" for reader in readers):
        return None
    found = read_dequantization(multiply.output(0))
    links = [link for link in (found.convert, found.subtract) if link is not None]
    below = _moves_above(found.data)
    if (
        found.multiply is None
        or not found.is_per_tensor
        or not below
        or any(len(readers_of(each)) > 1 for each in links)
    ):
        return None
    quantize = below[0].input_value(0).get_node()
    details = QuantizationDetails.of(quantize) if quantize.get_type_name() == "FakeQuantize" else None
    if details is None or not details.is_by_tensor or len(readers_of(quantize)) > 1:
        return None
    ends = [details.input_low, details.input_high, *map(found.apply, (details.output_low, details.output_high))]
    above = _moves_above(quantize.input_value(0))
    data = (above or [quantize])[0].input_value(0)
    real = fake_quantize_node(
        data, [constant(end.reshape(())).output(0) for end in ends], details.levels, precision_of(multiply.output(0))
    )
    real.set_friendly_name(quantize.get_friendly_name())
    if above:
        above[0].input(0).replace_source_output(real.output(0))
    replace_output(quantize.output(0), quantize.input_value(0) if above else real.output(0))
    detach(quantize)
    for moved in (*above, *below):
        moved.validate_and_infer_types()
    replace_output(multiply.output(0), found.data)
    return real


def _moves_above(value: Output) -> list[Node]:
    """The Reshapes and Transposes, in order, that end in a value and that nothing else reads."""
    moves: list[Node] = []
    while (node := value.get_node()).get_type_name() in REARRANGES and len(value.get_target_inputs()) == 1:
        moves.insert(0, node)
        value = node.input_value(0)
    return moves
