"""A layer, and what may become part of it, with other axes."""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import pairwise

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import Shape, reshaped, shape_of
from ovlpt.layer_transformation import move_tensor_names, replace_output
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations.families import ACTIVATIONS, AFFINE

ELEMENTWISE = AFFINE | {"Clamp", "Convert", "FakeQuantize", "Gelu", "HSwish", "Relu", "Sigmoid", "Swish", "Tanh"}
# What a GPU fuses into a layer
ON_A_GPU = ELEMENTWISE | ACTIVATIONS | {
    "Abs", "Divide", "Exp", "Floor", "Maximum", "Minimum", "Negative", "Sqrt", "SquaredDifference",
}  # fmt: skip


def chain_after(node: Node, kinds: Set[str], takes: Callable[[Output], bool]) -> list[Node]:
    """The node and the single-consumer operations of these kinds after it; ``takes``: their other inputs."""
    chain = [node]
    while len(targets := list(chain[-1].output(0).get_target_inputs())) == 1:
        follower = targets[0].get_node()
        others = [value for port, value in enumerate(follower.input_values()) if port != targets[0].get_index()]
        if follower.get_type_name() not in kinds or not all(map(takes, others)):
            break
        chain.append(follower)
    return chain


def is_constant(value: Output) -> bool:
    return isinstance(value.get_node(), Constant)


def between_reshapes(chain: list[Node], new: Node, changed: Callable[[Shape], Shape], made: Made) -> Node:
    """``new``, a layer on reshaped data, in the place of the first of ``chain``, and the others with such shapes, before a
    Reshape back.
    """
    original = chain[-1].output(0)
    targets, shape = original.get_target_inputs(), shape_of(original)
    replace_output(chain[0].output(0), new.output(0))
    for before, link in pairwise([new, *chain[1:]]):
        for port, value in enumerate(link.input_values()):
            sizes = shape_of(value)
            if value.get_node() is before or (other := changed(sizes)) == sizes:
                continue
            if is_constant(value):
                beside = constant(values_of(value.get_node()).reshape(other), precision_of(value))
            else:
                beside = reshaped(value, other)
            link.input(port).replace_source_output(beside.output(0))
        link.validate_and_infer_types()
    end = new.output(0) if len(chain) == 1 else original
    shaped, last = reshaped(end, shape), end.get_node()
    shaped.set_friendly_name(last.get_friendly_name())
    last.set_friendly_name(made_for(last.get_friendly_name(), made))
    for target in targets:
        target.replace_source_output(shaped.output(0))
    move_tensor_names(end, shaped.output(0))
    return new
