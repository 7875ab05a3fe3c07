"""Relaxed operations that the plugin would compute in the type of their data: a Convert to f32 is put before each.

Only where it is needed: a Convert before every zero point or residual Add loses the int8 fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from ovlpt.device.lowering.reductions import REDUCTIONS
from ovlpt.graph.constants import constant, constant_above, converted, precision_of, same_operation
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, relaxed_like
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import varies_along
from ovlpt.layer_transformation import insert_after, replace_output
from ovlpt.openvino_api import Node, Output, opset1
from ovlpt.operations import WEIGHTED
from ovlpt.operations.families import AFFINE, REARRANGES, SLICES, SPLITS
from ovlpt.operations.values import is_scalar_like, is_whole
from ovlpt.precisions import INT8, NUMPY, REAL
from ovlpt.predicates import is_decompression_multiply

_NO_FUSION = frozenset((*REDUCTIONS, "FakeQuantize", "Result", "ScaledDotProductAttention"))  # with a scale before them
_FUSED = {"Add": np.add, "Divide": np.divide, "Multiply": np.multiply, "Subtract": np.subtract}  # into a FakeQuantize
_MAY_DO_NOTHING = REARRANGES | SLICES | SPLITS | {"Broadcast", "Concat", "Gather", "Tile"}


def report_f32(node: Node) -> Node | None:
    """A relaxed operation that reports f16 keeps reporting it where the plugin turns f16 into f32. It reports f32, and
    a Convert follows; after a layer with weights it follows the constants that are added and multiplied, since later rules
    look for them in f32, and after a Clamp, since what it leaves may be much smaller than these: the plugin adds them to
    the next constant in f16.
    """
    if node.get_output_size() != 1 or node.get_output_element_type(0).get_type_name() != "f16" or not is_relaxed(node):
        return None
    reported = wide = relaxed_like(node, node.input_values(), "f32")
    _narrow(node, wide)
    while _comes_from(reported, WEIGHTED | {"Clamp"}) and (link := _affine_reader(wide)) is not None:
        constant_in_f32 = constant(constant_above(link.input_value(1)), "f32")
        wide = same_operation(link, [wide.output(0), constant_in_f32.output(0)])
        _narrow(link, wide)
        # a reference to it would count among the readers of its data
        link.input(0).replace_source_output(link.input_value(1))
    return reported


def _narrow(node: Node, wide: Node) -> None:
    """Let a Convert to f16 of ``wide``, the same in f32, stand in place of ``node``."""
    narrow = opset1.convert(wide.output(0), "f16")
    narrow.set_friendly_name(node.get_friendly_name())
    wide.set_friendly_name(made_for(node.get_friendly_name(), Made.F32))
    replace_output(node.output(0), narrow.output(0))


def _comes_from(node: Node, kinds: Collection[str]) -> bool:
    """Whether constants at most have been added and multiplied since one of these operations."""
    while node.get_type_name() in AFFINE | {"Convert"}:
        node = node.input_value(0).get_node()
    return node.get_type_name() in kinds


def _affine_reader(wide: Node) -> Node | None:
    """What alone reads the Convert that alone reads ``wide``, where it adds or multiplies by a constant."""
    node = wide
    for kinds in (("Convert",), AFFINE):
        targets = list(node.output(0).get_target_inputs())
        node = targets[0].get_node() if len(targets) == 1 and targets[0].get_index() == 0 else None
        if node is None or node.get_type_name() not in kinds or is_relaxed(node):
            return None
    return node if constant_above(node.input_value(1)) is not None else None


def round_in_f32(quantize: Node) -> Node | None:
    """A relaxed FakeQuantize of f16 that reports f32 would be dropped where it has 65536 levels, and what reads it throw."""
    data = quantize.input_value(0)
    if precision_of(data) != "f16" or precision_of(quantize.output(0)) != "f32":
        return None
    quantize.input(0).replace_source_output(opset1.convert(data, "f32").output(0))
    return quantize


def clamp_in_f32(node: Node) -> Node | None:
    """A relaxed Clamp of integers that a FakeQuantize after it makes needless would be left out, and the FakeQuantize
    then report its new input's type. One that cuts between two integers, or beyond all of them, would be rounded to one.
    """
    return _read_f32(node) if computes_in_f32(node) else None


def computes_in_f32(clamp: Node) -> bool:
    """Whether `clamp_in_f32` holds."""
    return _is_needless(clamp) or _cuts_between_integers(clamp)


def needless_clamp_in_f32(node: Node) -> Node | None:
    """`clamp_in_f32` where a Convert is a layer of its own: only if the Clamp is needless indeed."""
    return _read_f32(node) if _is_needless(node) else None


def _is_needless(clamp: Node) -> bool:
    """Whether a FakeQuantize after the Clamp, or after constants that the plugin fuses into it, cuts off as much."""
    low, high = (np.float64(clamp.get_attributes()[end]) for end in ("min", "max"))
    pending = [(reader, low, high) for reader in readers_of(clamp)]
    while pending:
        reader, low, high = pending.pop()
        if reader.get_type_name() == "FakeQuantize":
            details = QuantizationDetails.of(reader)
            if details is None or ((details.input_low >= low).all() and (details.input_high <= high).all()):
                return True
        elif (compute := _FUSED.get(reader.get_type_name())) and (
            values := constant_above(reader.input_value(1))
        ) is not None:
            ends = [compute(end, values) for end in (low, high)]
            pending += [(each, np.minimum(*ends), np.maximum(*ends)) for each in readers_of(reader)]
    return False


def _cuts_between_integers(clamp: Node) -> bool:
    if precision_of(clamp.input_value(0)) in REAL:
        return False
    limits = np.iinfo(NUMPY[precision_of(clamp.input_value(0))])
    low, high = (clamp.get_attributes()[end] for end in ("min", "max"))
    return (low > limits.min and not is_whole(low)) or (high < limits.max and not is_whole(high))


def mvn_in_f32(node: Node, is_kernel: Callable[[Node], bool]) -> Node | None:
    """A relaxed MVN that is not a kernel of its own is decomposed in the integer type of its data.

    ``is_kernel``: of the device (`ovlpt.plugin_config.cpu.KERNELS`, `ovlpt.plugin_config.gpu.KERNELS`).
    """
    decomposed = node.get_type_info().version_id == "opset6" and not is_kernel(node)
    return _read_f32(node) if decomposed else None


def normalize_in_f32(node: Node) -> Node | None:
    """A relaxed NormalizeL2 of rank 5 is not a kernel and decomposed in the integer type of its data."""
    return None if len(shape_of(node.output(0)) or ()) in (2, 3, 4) else _read_f32(node)


def reduce_in_f32(node: Node) -> Node | None:
    """A relaxed ReduceMean or ReduceSum before another of its kind would be merged with it into one that is not relaxed
    and throw.
    """
    return _read_f32(node) if node.get_type_name() in _readers(node) else None


def scale_in_f32(multiply: Node) -> Node | None:
    """A relaxed Multiply of integers before a layer that stays in float would be fused into the layer's weights, and the
    layer read integers: MultiplyConvolutionFusion throws. Before an Add of a constant, the plugin's own LPT would
    subtract in the integer type: wrong numbers, no error. Where both factors are tensors, or such a product alone, an
    end of the model, a quantization, a reduction or a whole attention reads the result, the plugin changes nothing. Nor
    does it between a Transpose and a Concat or a sum of tensors. Elsewhere no fusion reaches through a Convert to f64 after
    it, or through the one back; a Convert before it would be a layer of its own where sizes are dynamic and floats are
    bf16.

    After integer arithmetic with a constant the two would be merged into one that is not relaxed, and throw, or be
    computed in the type of the result; after a product of integers, as ONNX's MatMulInteger is read, into its weights. And
    after what the plugin drops, or a FakeQuantize of integers, it would be fused into the FakeQuantize, which then writes
    the real values as integers. A factor of one would be dropped, with the type that it reports: an output of the model would
    become integers, an attention throw. And rules look for one by channel, column or row. A Convert is put before these.
    """
    if _would_meet_interval(multiply) or would_be_dropped(multiply):
        return convert_data(multiply, opset1.multiply)
    data = multiply.input_value(0)
    follows = follows_constant(data, AFFINE) or data.get_node().get_type_name() == "MatMul"
    if _readers(multiply) <= _NO_FUSION and not follows:
        return None
    if precision_of(multiply.input_value(0)) in REAL:
        return convert_data(multiply, opset1.multiply) if is_widened(multiply) else None
    factor = constant_above(multiply.input_value(1))
    if factor is None or _is_operand_of_open_sizes(multiply, follows) or _is_transposed_for_tensors(multiply):
        return None
    found = _is_by_row_at_most(multiply, factor) or repeats_data(multiply) or _scales_image(multiply, factor)
    if follows or not found or precision_of(multiply.output(0)) != "f32":
        return convert_data(multiply, opset1.multiply)
    targets = multiply.output(0).get_target_inputs()
    wide = converted(multiply.output(0), "f64")
    back = converted(wide.output(0), "f32")
    insert_after(multiply.output(0), back.output(0), targets, [wide, back])
    return multiply


def _is_by_row_at_most(multiply: Node, factor: np.ndarray) -> bool:
    """Whether a factor is one number, or differs along the first of several axes alone, as after a Pad along that."""
    rank = multiply.get_output_partial_shape(0).rank
    by_row = rank.is_static and rank.get_length() > 1 and varies_along(factor, rank.get_length(), (0,))
    return is_scalar_like(factor) or by_row


def _scales_image(multiply: Node, factor: np.ndarray) -> bool:
    """Whether it reads an input of four axes or more, as an image in NHWC, with a factor along the last alone."""
    rank = multiply.get_output_partial_shape(0).rank
    if rank.is_dynamic or multiply.input_value(0).get_node().get_type_name() != "Parameter":
        return False
    axes = rank.get_length()
    return axes > 3 and varies_along(factor, axes, (axes - 1,))


def repeats_data(node: Node) -> bool:
    """Whether a constant repeats its data along the last axis, which no layer and no interval takes in."""
    before, after = (shape_of(value) for value in (node.input_value(0), node.output(0)))
    return bool(before and after) and before[-1] == 1 != after[-1]


def would_be_dropped(multiply: Node) -> bool:
    """Whether it multiplies what is no real number by one, for others than a FakeQuantize, which reads both alike."""
    factor = constant_above(multiply.input_value(1)) if is_widened(multiply) else None
    return factor is not None and bool((factor == 1).all()) and not _readers(multiply) <= {"FakeQuantize"}


def _would_meet_interval(multiply: Node) -> bool:
    """Whether a FakeQuantize is above operations that together do not change the shape, and may do nothing at all; or
    directly before, and reads integers: the plugin makes one that is not relaxed of it and a constant, which has the type of
    its data.
    """
    if constant_above(multiply.input_value(1)) is None:
        return False
    value = multiply.input_value(0)
    shape, moved = shape_of(value), False
    while value.get_node().get_type_name() in _MAY_DO_NOTHING and len(value.get_target_inputs()) == 1:
        value, moved = value.get_node().input_value(0), True
    quantize = value.get_node()
    if quantize.get_type_name() != "FakeQuantize" or shape_of(value) != shape:
        return False
    return moved or precision_of(quantize.input_value(0)) not in REAL


def convert_by_f64(convert: Node) -> Node | None:
    """Integers that a scale, with or without a zero point, leads to float MatMuls alone look like weights that are to stay
    compressed; the plugin then keeps their Convert, which is a layer of its own where sizes are dynamic. By way of f64, which
    it changes to f32 later, they do not look so.
    """
    source, targets = convert.input_value(0), convert.output(0).get_target_inputs()
    readers = [target.get_node() for target in targets if target.get_index() == 0]
    if precision_of(source) not in INT8 or constant_above(source) is not None or len(readers) != len(targets):
        return None
    if not all(map(is_decompression_multiply, readers)):
        return None
    wide = opset1.convert(source, "f64")
    wide.set_friendly_name(made_for(convert.get_friendly_name(), Made.F64))
    convert.input(0).replace_source_output(wide.output(0))
    return convert


def add_in_f32(add: Node) -> Node | None:
    """A relaxed Add of a constant to f16 or integers, before or after another Add, would be merged with it into one that
    is not relaxed and throw; so would it beside a Subtract, which the plugin makes an Add of. One of what is multiplied
    by -1 would become such a Subtract, of integers where its factor is relaxed, and one of 0 be dropped with the type that it reports.
    """
    added, sums = constant_above(add.input_value(1)) if is_widened(add) else None, ("Add", "Subtract")
    if added is not None and (
        not added.any() or not _readers(add).isdisjoint(sums) or follows_constant(add.input_value(0), sums)
    ):
        return convert_data(add, opset1.add)
    types = {precision_of(value) for value in add.input_values()}
    turned = [value.get_node() for value in add.input_values() if _is_turned(value.get_node())]
    relaxed = [factor for factor in turned if is_widened(factor)]
    if not relaxed and (len(types) == 1 or not turned):
        return None
    for factor in relaxed:  # the Subtract would read its data
        convert_data(factor, opset1.multiply)
    real = precision_of(add.output(0))
    plain = opset1.add(*(opset1.convert(value, real) for value in add.input_values()))
    plain.set_friendly_name(add.get_friendly_name())
    replace_output(add.output(0), plain.output(0))
    return plain


def follows_constant(data: Output, kinds: Collection[str]) -> bool:
    """Whether it is the result of an operation of ``kinds`` with a constant."""
    before = data.get_node()
    return before.get_type_name() in kinds and any(constant_above(value) is not None for value in before.input_values())


def _is_turned(node: Node) -> bool:
    """Whether it has another sign than its data."""
    factor = constant_above(node.input_value(1)) if node.get_type_name() == "Multiply" else None
    return factor is not None and bool((factor == -1).all())


def is_widened(node: Node) -> bool:
    """Whether input 1 is real, and input 0 of another type."""
    data, other = (precision_of(value) for value in node.input_values())
    return other in REAL and data != other


def meets_weights(multiply: Node) -> bool:
    """Whether a scale by a constant stands before a layer with weights."""
    return constant_above(multiply.input_value(1)) is not None and not WEIGHTED.isdisjoint(_readers(multiply))


def _is_operand_of_open_sizes(multiply: Node, follows: bool) -> bool:
    """Whether only products with other tensors, and differences from them, read the result, and it has dynamic sizes; or,
    where it ``follows`` no other constant, reductions and normalizations.

    The plugin drops a factor of one, with the type that it reports, and the product would read integers: it throws.
    """
    readers, factor = readers_of(multiply), constant_above(multiply.input_value(1))
    if factor is None or (factor == 1).all():
        return False
    return None in (shape_of(multiply.output(0)) or ()) and all(
        (
            reader.get_type_name() in ("Multiply", "Subtract")
            and all(constant_above(value) is None for value in reader.input_values())
        )
        or (reader.get_type_name() in (*REDUCTIONS, "MVN") and not follows)
        for reader in readers
    )


def _is_transposed_for_tensors(multiply: Node) -> bool:
    """Whether a Transpose that nothing else reads comes before, and nothing but Concats or Adds of tensors after."""
    data = multiply.input_value(0)
    alone = data.get_node().get_type_name() == "Transpose" and len(data.get_target_inputs()) == 1
    return alone and all(
        reader.get_type_name() == "Concat"
        or (reader.get_type_name() == "Add" and all(constant_above(value) is None for value in reader.input_values()))
        for reader in readers_of(multiply)
    )


def convert_data(node: Node, operation: Callable[[Node, Output], Node]) -> Node:
    """The plain ``operation`` in place of the relaxed one, in the constant's type, or that of the result where that is f32."""
    constant_type = precision_of(node.input_value(1))
    real = "f32" if precision_of(node.output(0)) == "f32" else constant_type
    other = node.input_value(1) if constant_type == real else opset1.convert(node.input_value(1), real).output(0)
    plain = operation(opset1.convert(node.input_value(0), real), other)
    plain.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), plain.output(0))
    return plain


def _readers(node: Node) -> set[str]:
    return {target.get_node().get_type_name() for target in node.output(0).get_target_inputs()}


def _read_f32(node: Node) -> Node | None:
    if precision_of(node.input_value(0)) in REAL:
        return None
    node.input(0).replace_source_output(opset1.convert(node.input_value(0), "f32").output(0))
    return node
