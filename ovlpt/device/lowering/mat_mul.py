"""The form of a MatMul: its Transposes, and its rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Set

import numpy as np

from ovlpt.device.lowering.links import BEFORE_INTERVAL, affine_links, block_fusion, links_above, only_reader
from ovlpt.device.lowering.reductions import REDUCTIONS
from ovlpt.device.lowering.reshaping import ELEMENTWISE, ON_A_GPU, between_reshapes, chain_after, end_in, is_constant
from ovlpt.device.this_cpu import saturates
from ovlpt.graph.constants import constant, is_constant_path, meets, precision_of, values_of
from ovlpt.graph.consumers import is_output, readers_of_all_outputs
from ovlpt.graph.mat_mul import absorbed_transposes
from ovlpt.graph.names import Made
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, relaxed, same_on
from ovlpt.graph.shapes import Shape, reshaped, shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, Constant, Core, Node, Output, opset1, opset8
from ovlpt.operations import RECURRENT
from ovlpt.operations.families import AFFINE, CONVOLUTIONS, REARRANGES, RESHAPES
from ovlpt.precisions import INT8

_TILE, _SUMMED = 32, 64  # numbers in a row of one: of bf16, of int8
# of one attention
_BETWEEN_PRODUCTS = ELEMENTWISE | {"Floor", "Maximum", "Minimum", "Reshape", "Round", "Select", "Softmax"}


def absorb_transposes(node: Node) -> Node | None:
    """A Transpose of the last two axes before a MatMul would be fused into a MatMul that is not relaxed; the relaxed one
    absorbs it into its flags first. One before a reduction would be moved after it, and stays by a maximum with the least
    number.
    """
    absorbed = absorbed_transposes(node)
    if absorbed is None:
        moved = [value.get_node() for value in node.input_values() if _may_be_after_transpose(value.get_node())]
        for reduction in moved:
            block_fusion(reduction)
        return node if moved else None
    inputs, attributes = absorbed
    new = relaxed("MatMul", inputs, precision_of(node.output(0)), attributes)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def _may_be_after_transpose(reduction: Node) -> bool:
    """Whether the plugin would let a reduction and the Transpose before it change places."""
    if reduction.get_type_name() not in REDUCTIONS or not reduction.get_attributes()["keep_dims"]:
        return False
    return reduction.input_value(0).get_node().get_type_name() == "Transpose"


def quantize_before_reshape(node: Node) -> Node | None:
    """A quantization of one interval after a Reshape of the result, as of queries and values by head, is moved before it: the
    plugin makes it a part of the layer there, and on 2026.4 a layer of its own after the Reshape, in stock, too.
    """
    reshape = only_reader([node, *affine_links(node)][-1])
    quantize = None if reshape is None or reshape.get_type_name() not in RESHAPES else only_reader(reshape)
    if quantize is None or quantize.get_type_name() != "FakeQuantize" or not is_relaxed(quantize):
        return None
    details = QuantizationDetails.of(quantize)
    if details is None or not details.is_by_tensor or is_output(reshape.output(0)):
        return None
    source = reshape.input_value(0)
    replace_output(quantize.output(0), reshape.output(0))
    quantize.input(0).replace_source_output(source)
    for port, end in enumerate(details.intervals, 1):  # of the rank of the Reshape's result until now
        scalar = constant(end.reshape(()), precision_of(quantize.input_value(port)))
        quantize.input(port).replace_source_output(scalar.output(0))
    quantize.validate_and_infer_types()
    reshape.input(0).replace_source_output(quantize.output(0))
    reshape.validate_and_infer_types()
    return node


def give_weights_two_axes(node: Node) -> Node | None:
    """Of weights of one matrix with more axes a GPU takes the sums for integers of 8 bits: wrong numbers, or it throws."""
    (data, weights), shape = node.input_values(), shape_of(node.input_value(1)) or ()
    rank = len(shape_of(data) or ())
    if not is_constant(weights) or len(shape) < 3 or set(shape[:-2]) != {1} or rank < 2:
        return None
    if rank < len(shape):
        first = constant(np.arange(len(shape) - rank), "i64")
        node.input(0).replace_source_output(opset1.unsqueeze(data, first).output(0))
    matrix = constant(values_of(weights.get_node()).reshape(shape[-2:]), precision_of(weights))
    node.input(1).replace_source_output(matrix.output(0))
    return node


def lay_weights_in_rows(node: Node) -> Node | None:
    """``MatMul(x, W)`` as ``MatMul(x, W.T, transpose_b)``.

    Weights of a MatMul lie in rows, else a Transpose of them is made, and with it a MatMul that is not relaxed: by a GPU,
    and when a saved model is optimized again (MatMulConstTransposesExtraction).
    """
    weights, attributes = node.input_value(1), node.get_attributes()
    if not isinstance(weights.get_node(), Constant) or len(weights.get_shape()) != 2 or attributes["transpose_b"]:
        return None
    rows = constant(values_of(weights.get_node()).T, precision_of(weights))
    inputs, attributes = [node.input_value(0), rows.output(0)], {**attributes, "transpose_b": True}
    new = relaxed("MatMul", inputs, precision_of(node.output(0)), attributes)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def run_at_rank_3(node: Node) -> Node | None:
    """``MatMul([N, H, W, C], [C, K])`` and the elementwise operations after it, as [N, H·W, C]; the MatMul now
    there.

    After a MatMul of rank 4 no per-channel constant fuses, a bias for instance; since 2026 its scale does. The layer and the
    elementwise chain after it run at rank 3 between two Reshapes, which move no data. Not where a size
    is dynamic and a sum with another tensor follows: that fuses the chain, and is a layer at either rank. Nor where a
    Transpose would stand before the MatMul then: the plugin would fuse it into one that is not relaxed.
    """
    shape, weights = shape_of(node.input_value(0)), node.input_value(1)
    plain = (
        isinstance(weights.get_node(), Constant)
        and len(weights.get_shape()) == 2
        and not node.get_attributes()["transpose_a"]
    )
    if not plain or shape is None or len(shape) != 4 or any(size is None for size in shape[1:]):
        return None
    chain = chain_after(node, ELEMENTWISE, lambda value: is_constant(value) and _flattens(value.get_node()))
    takes_scale = RELEASE >= (2026, 0) and len(chain) > 1 and chain[1].get_type_name() == "Multiply"
    after = chain[2 if takes_scale else 1 :]
    others = (value.get_node() for link in after for value in link.input_values())
    if not any(isinstance(other, Constant) and other.data.size > 1 for other in others):
        return None
    if (None in shape and _is_taken_in(chain[-1])) or _was_transposed(node.input_value(0), _merged(shape, slice(1, 3))):
        return None
    return _with_merged(node, chain, slice(1, 3))


def _was_transposed(value: Output, shape: Shape) -> bool:
    """Whether a Reshape to this shape would leave the Transpose that was reshaped."""
    while value.get_node().get_type_name() in RESHAPES:
        value = value.get_node().input_value(0)
    return value.get_node().get_type_name() == "Transpose" and shape_of(value) == shape


def _is_taken_in(link: Node) -> bool:
    """Whether all that reads the result is a sum or a product of it and another tensor."""
    targets = list(link.output(0).get_target_inputs())
    if len(targets) != 1 or (reader := targets[0].get_node()).get_type_name() not in AFFINE:
        return False
    return not any(is_constant(value) for value in reader.input_values())


def run_columns_at_rank_3(node: Node) -> Node | None:
    """The same with all that may become part of the layer, tensors of its shape as well; data that are to be transposed as
    [N·H, C, W].

    Without matrix engines a GPU makes rows and columns of four axes, and reads per-column constants, or another tensor, as if
    there still were four: the first column stands for all. Wrong numbers, no error, with the plugin's own LPT too.
    """
    shape, weights = shape_of(node.output(0)), node.input_value(1)
    if shape is None or len(shape) != 4 or None in shape or not is_constant_path(weights.get_node()):
        return None
    *more, rows, columns = weights.get_shape()
    if more and (set(more) != {1} or not is_constant(weights)):
        return None
    if more:
        flat = constant(values_of(weights.get_node()).reshape(rows, columns), precision_of(weights))
        node.input(1).replace_source_output(flat.output(0))
    axes = slice(0, 2) if node.get_attributes()["transpose_a"] else slice(1, 3)

    def merges(value: Output) -> bool:
        sizes = shape_of(value)
        if sizes is None or (not is_constant(value) and sizes != shape):
            return False
        both = ((1,) * (4 - len(sizes)) + sizes)[axes]
        return both == (1, 1) or (len(sizes) == 4 and both == shape[axes])

    return _with_merged(node, chain_after(node, ON_A_GPU, merges), axes)


def run_rows_apart(node: Node) -> Node | None:
    """A MatMul with weights of rank 4, some of whose sizes are dynamic, as [N, H·W, C] up to what differs between rows or heads; as
    [N·H·W, C] where one size is dynamic, since the plugin would drop the Reshapes of the other around floats.

    The plugin makes rows and columns of four axes, and what becomes part of the layer is read by those: wrong numbers, no
    error, with the plugin's own LPT and in a network of floats too. What differs between columns alone is right.
    """
    shape, weights = shape_of(node.output(0)), node.input_value(1)
    if shape is None or len(shape) != 4 or None not in shape or shape[1:].count(None) > 1:
        return None
    is_plain = is_constant_path(weights.get_node()) and not node.get_attributes()["transpose_a"]
    if not is_plain or len(shape_of(weights) or ()) != 2 or (shape_of(node.input_value(0)) or (None,))[-1] is None:
        return None
    others = [value for link in chain_after(node, ON_A_GPU, lambda value: True)[1:] for value in link.input_values()]
    if all(_is_by_column(value) for value in others if is_constant(value)):
        return None
    axes = slice(0 if shape.count(None) == 1 else 1, 3)
    return _with_merged(node, chain_after(node, ON_A_GPU, _is_by_column), axes)


def run_apart_from_attention(node: Node) -> Node | None:
    """A product of two tensors in int8 that the plugin would take for an attention's, at rank 5 between two Reshapes.

    Before 2025.1 it makes one Subgraph, of up to four axes, of an attention whose scores are of floats, and 2025.0 of one whose
    scores are u8 by i8; on CPUs without VNNI that has no kernel for integers: it throws, with the plugin's own LPT too.
    """
    shapes = [shape_of(value) for value in node.input_values()]
    if RELEASE >= (2025, 1) or any(shape is None or None in shape or not 2 < len(shape) < 5 for shape in shapes):
        return None
    first, second = node.input_values()
    if not {precision_of(first), precision_of(second)} <= {*INT8} or is_constant_path(second.get_node()):
        return None
    _, weights = links_above(first.get_node(), BEFORE_INTERVAL | {"FakeQuantize"})
    if weights.get_type_name() == "Softmax":
        throws = meets(weights, _multiplies_floats, _computed_from)
    else:
        throws = RELEASE >= (2025, 0) and precision_of(first) == "u8"
    if not throws or not saturates(Core()):
        return None
    chain = chain_after(node, ELEMENTWISE, lambda value: is_constant(value) and math.prod(value.get_shape()) == 1)
    factors = [
        reshaped(value, _of_5_axes(shape)).output(0) for value, shape in zip((first, second), shapes, strict=True)
    ]
    return between_reshapes(chain, same_on(node, factors), _of_5_axes, Made.RANK_5)


def part_products_of_two_types(second: Node) -> Node | None:
    """The second product of an attention, of other types than the first, apart from it where both have the same sizes.

    With AMX and floats in bf16, one Subgraph of both computes the second with the tiles of the first: wrong numbers, no
    error, with the plugin's own LPT, too. So it is where heads have as many elements as there are keys, and not more than a
    tile has numbers of bf16 in a row. Of open lengths, which may come to that, it stays one.
    """
    first = _product_before_softmax(second)
    if first is None or _multiplies_floats(first) == _multiplies_floats(second):
        return None
    sizes = [_summed_size(first), _summed_size(second), (shape_of(second.output(0)) or (None,))[-1]]
    if None in sizes:
        return None
    head, keys = sizes[0] % _SUMMED or _SUMMED, sizes[1]
    if head > _TILE or {head, *sizes[1:]} != {keys}:
        return None
    # they would be one again past what does nothing; the order of keys makes no difference
    attributes, order = second.get_attributes(), constant(np.arange(keys)[::-1], "i32")
    axes = (-2 if attributes["transpose_a"] else -1), (-1 if attributes["transpose_b"] else -2)
    for port, axis in enumerate(axes):
        turned = opset8.gather(second.input_value(port), order, constant(np.array(axis), "i32"))
        second.input(port).replace_source_output(turned.output(0))
    return second


def part_products_at_ends(second: Node) -> Node | None:
    """The second product of an attention, with an axis more than the first, where the plugin leaves floats in f32: keys or
    values that are an input, or no layer between the result and an output.

    In 2025.3 and 2025.4 one Subgraph of both, in bf16 without AMX, takes f32 for bf16, or throws, in a network of floats, too.
    """
    if not (2025, 3) <= RELEASE < (2026, 0):
        return None
    first = _product_before_softmax(second)
    if first is None or not (_multiplies_floats(first) or _multiplies_floats(second)):
        return None
    if not (
        _is_input(first.input_value(1)) or _is_input(second.input_value(1)) or meets(second, _is_result, _before_layer)
    ):
        return None
    chain = chain_after(second, ELEMENTWISE, lambda value: is_constant(value) and math.prod(value.get_shape()) == 1)
    value = chain[-1].output(0)
    targets, axis = value.get_target_inputs(), constant(np.zeros(1), "i64")
    second.input(0).replace_source_output(opset1.unsqueeze(second.input_value(0), axis).output(0))
    for link in chain:
        link.validate_and_infer_types()
    end_in(opset1.squeeze(value, axis), value, targets, Made.RANK_5)
    return second


def _is_input(value: Output) -> bool:
    """Whether a tensor is an input of the model, or one in another order or shape."""
    while value.get_node().get_type_name() in REARRANGES:
        value = value.get_node().input_value(0)
    return value.get_node().get_type_name() == "Parameter"


def _is_result(node: Node) -> bool:
    return node.get_type_name() == "Result"


def _before_layer(node: Node) -> list[Node]:
    """What reads the results of a node, up to layers before which the plugin has floats in bf16."""
    readers = readers_of_all_outputs(node)
    return [reader for reader in readers if reader.get_type_name() not in RECURRENT and not _has_weights(reader)]


def _has_weights(node: Node) -> bool:
    return node.get_type_name() in CONVOLUTIONS | {"MatMul"} and _is_stored(node.input_value(1))


def _product_before_softmax(second: Node) -> Node | None:
    """The product of two tensors of which a Softmax computes the weights that ``second`` reads."""
    node, has_softmax = second.input_value(0).get_node(), False
    while node.get_type_name() in _BETWEEN_PRODUCTS:
        has_softmax |= node.get_type_name() == "Softmax"
        node = node.input_value(int(node.get_type_name() == "Select")).get_node()
    is_product = node.get_type_name() == "MatMul" and not any(map(_is_stored, node.input_values()))
    return node if has_softmax and is_product and not any(map(_is_stored, second.input_values())) else None


def _is_stored(value: Output) -> bool:
    return is_constant_path(value.get_node())


def _summed_size(product: Node) -> int | None:
    shape, transposed = shape_of(product.input_value(0)), product.get_attributes()["transpose_a"]
    return None if shape is None or len(shape) < 2 else shape[-2 if transposed else -1]


def _multiplies_floats(node: Node) -> bool:
    return node.get_type_name() == "MatMul" and precision_of(node.input_value(0)) not in INT8


def _computed_from(node: Node) -> list[Node]:
    """What weights of an attention are computed from, up to its products."""
    return [value.get_node() for value in node.input_values()] if node.get_type_name() in _BETWEEN_PRODUCTS else []


def _of_5_axes(shape: Shape) -> Shape:
    return (*[1] * (5 - len(shape)), *shape)


def run_vector_as_row(node: Node) -> Node | None:
    """``MatMul([C], W)`` as ``MatMul([1, C], W)`` up to a FakeQuantize whose ends differ by element, which then is a part of
    the layer.

    The plugin reads a vector as a batch, and the bounds per channel: wrong numbers, with its own LPT too. `gpu` does the same
    for what does not follow a layer, and stays a kernel of its own.
    """
    chain = _after_vector(node, ON_A_GPU)
    ends = [value for link in chain if link.get_type_name() == "FakeQuantize" for value in link.input_values()[1:]]
    if all(math.prod(value.get_shape()) == 1 for value in ends):
        return None
    return _with_vectors(node, chain, (1,))


def run_vector_at_rank_3(node: Node) -> Node | None:
    """``MatMul([C], W)``, and the elementwise operations after it, as ``MatMul([1, 1, C], W)``.

    The plugin makes a MatMul of two tensors of it, between two Reshapes: nothing after it would be part of the layer, with its
    own LPT, too.
    """
    chain = _after_vector(node, ELEMENTWISE)
    return _with_vectors(node, chain, (1, 1)) if chain else None


def run_column_at_rank_3(node: Node) -> Node | None:
    """``MatMul([N, C], [C, 1])``, and the elementwise operations up to a FakeQuantize after it, as ``MatMul([1, N, C], [C, 1])``.

    Of known sizes the plugin makes a Subgraph of it and the MatMul that reads the FakeQuantize, and throws, with its own LPT, too.
    """
    shape, columns = shape_of(node.input_value(0)) or (None,), (shape_of(node.output(0)) or (None,))[-1]
    if len(shape) != 2 or None in shape or columns != 1 or node.get_attributes()["transpose_a"]:
        return None
    chain = chain_after(node, ELEMENTWISE, lambda value: is_constant(value) and math.prod(value.get_shape()) == 1)
    if chain[-1].get_type_name() != "FakeQuantize" or not is_constant(node.input_value(1)):
        return None
    reader = only_reader(chain[-1])
    if reader is None or reader.get_type_name() != "MatMul":
        return None
    return _with_shapes(node, chain, lambda shape: (1, *shape) if len(shape) == 2 else shape, Made.RANK_3)


def _after_vector(node: Node, kinds: Set[str]) -> list[Node]:
    """The MatMul of a vector with weights, and the operations of these kinds after it; empty where it is another."""
    shapes = [shape_of(value) or () for value in node.input_values()]
    if list(map(len, shapes)) != [1, 2] or not is_constant(node.input_value(1)) or node.get_attributes()["transpose_a"]:
        return []
    return chain_after(node, kinds, lambda value: is_constant(value) and len(value.get_shape()) < 2)


def _with_vectors(node: Node, chain: list[Node], axes: Shape) -> Node:
    """The MatMul, and the chain that begins with it, with these axes before that of each vector."""
    return _with_shapes(node, chain, lambda shape: (*axes, *shape) if len(shape) == 1 else shape, Made.ROW)


def _with_merged(node: Node, chain: list[Node], axes: slice) -> Node:
    """The MatMul, and the chain that begins with it, with these axes as one."""
    return _with_shapes(node, chain, lambda shape: _merged(shape, axes) if len(shape) == 4 else shape, Made.RANK_3)


def _with_shapes(node: Node, chain: list[Node], changed: Callable[[Shape], Shape], made: Made) -> Node:
    flat = reshaped(node.input_value(0), changed(shape_of(node.input_value(0))))
    return between_reshapes(chain, same_on(node, [flat.output(0), node.input_value(1)]), changed, made)


def _merged(shape: Shape, axes: slice) -> Shape:
    sizes = shape[axes]
    return (*shape[: axes.start], None if None in sizes else math.prod(sizes), *shape[axes.stop :])


def _is_by_column(value: Output) -> bool:
    return is_constant(value) and set(value.get_shape()[:-1]) <= {1}


def _flattens(node: Constant) -> bool:
    """Whether a constant still broadcasts once H and W are one axis."""
    shape = tuple(node.get_output_shape(0))
    return (
        len(shape) <= 1
        or (len(shape) <= 3 and all(size == 1 for size in shape[:-1]))
        or (len(shape) == 4 and shape[1:3] == (1, 1))
    )
