"""The form of a MatMul: its Transposes, and its rank."""

from __future__ import annotations

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.mat_mul import absorbed_transposes
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import relaxed, relaxed_like
from ovlpt.graph.shapes import reshaped, shape_of
from ovlpt.layer_transformation import move_tensor_names, replace_output
from ovlpt.openvino_api import RELEASE, Constant, Node

_ELEMENTWISE = frozenset(
    (
        "Add",
        "Clamp",
        "Convert",
        "FakeQuantize",
        "Gelu",
        "HSwish",
        "Multiply",
        "Relu",
        "Sigmoid",
        "Subtract",
        "Swish",
        "Tanh",
    )
)


def absorb_transposes(node: Node) -> Node | None:
    """A Transpose of the last two axes before a MatMul would be fused into a MatMul that is not relaxed; the relaxed one
    takes it into its flags first.
    """
    absorbed = absorbed_transposes(node)
    if absorbed is None:
        return None
    inputs, attributes = absorbed
    new = relaxed("MatMul", inputs, precision_of(node.output(0)), attributes)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def lay_weights_in_rows(node: Node) -> Node | None:
    """``MatMul(x, W)`` as ``MatMul(x, W.T, transpose_b)``.

    Weights of a MatMul lie in rows, else a Transpose of them is made, and with it a MatMul that is not relaxed: by a GPU,
    and by who optimizes a saved model once more (MatMulConstTransposesExtraction).
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

    After a MatMul of rank 4 no constant by channel fuses, a bias for instance; since 2026 its scale does. The layer and the
    elementwise chain after it run at rank 3 between two Reshapes, which cost nothing.
    """
    shape, output_shape = shape_of(node.input_value(0)), shape_of(node.output(0))
    weights = node.input_value(1)
    plain = (
        isinstance(weights.get_node(), Constant)
        and len(weights.get_shape()) == 2
        and not node.get_attributes()["transpose_a"]
    )
    if not plain or shape is None or len(shape) != 4 or any(size is None for size in shape[1:]):
        return None
    chain = _elementwise_chain(node)
    takes_scale = RELEASE >= (2026, 0) and len(chain) > 1 and chain[1].get_type_name() == "Multiply"
    after = chain[2 if takes_scale else 1 :]
    others = (value.get_node() for link in after for value in link.input_values())
    if not any(isinstance(other, Constant) and other.data.size > 1 for other in others):
        return None
    last = chain[-1]
    flat = reshaped(node.input_value(0), (shape[0], shape[1] * shape[2], shape[3]))
    targets, original = last.output(0).get_target_inputs(), last.output(0)
    new = relaxed_like(node, [flat.output(0), weights], precision_of(node.output(0)))
    replace_output(node.output(0), new.output(0))
    for link in chain[1:]:
        for port in range(link.get_input_size()):
            source = link.input_value(port).get_node()
            if isinstance(source, Constant) and len(source.get_output_shape(0)) == 4:
                values = values_of(source)
                squeezed = values.reshape(values.shape[0], -1, values.shape[3])
                link.input(port).replace_source_output(
                    constant(squeezed, precision_of(link.input_value(port))).output(0)
                )
        link.validate_and_infer_types()
    end = new.output(0) if last is node else original
    shaped = reshaped(end, output_shape)
    last = end.get_node()
    shaped.set_friendly_name(last.get_friendly_name())
    last.set_friendly_name(made_for(last.get_friendly_name(), Made.RANK_3))
    for target in targets:
        target.replace_source_output(shaped.output(0))
    move_tensor_names(end, shaped.output(0))
    return new


def _elementwise_chain(node: Node) -> list[Node]:
    """The node and the single-consumer elementwise operations after it, each with constants as its other inputs."""
    chain = [node]
    while True:
        targets = list(chain[-1].output(0).get_target_inputs())
        if len(targets) != 1:
            return chain
        follower = targets[0].get_node()
        others = [
            follower.input_value(port).get_node()
            for port in range(follower.get_input_size())
            if port != targets[0].get_index()
        ]
        if follower.get_type_name() not in _ELEMENTWISE or not all(
            isinstance(other, Constant) and _flattens(other) for other in others
        ):
            return chain
        chain.append(follower)


def _flattens(node: Constant) -> bool:
    """Whether a constant still broadcasts once H and W are one axis."""
    shape = tuple(node.get_output_shape(0))
    return (
        len(shape) <= 1
        or (len(shape) <= 3 and all(size == 1 for size in shape[:-1]))
        or (len(shape) == 4 and shape[1:3] == (1, 1))
    )
