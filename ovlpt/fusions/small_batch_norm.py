"""Normalizations that are spelled in small operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ovlpt.fusions.channelwise import (
    IDENTITY,
    Affine,
    affine_of,
    along,
    constant_port,
    data_of,
    path_above,
    rank_of,
)
from ovlpt.fusions.evaluation import evaluate
from ovlpt.fusions.fusion import Fusion, take_over
from ovlpt.fusions.weights import output_channel_axis
from ovlpt.graph.constants import constant, precision_of
from ovlpt.layer_transformation import consumers_of
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.operations.families import ARITHMETIC, RESHAPES
from ovlpt.trace import reject_unless

_WRAPPERS = RESHAPES | {"Convert", "ConvertLike"}  # the same numbers
_ABOVE = frozenset(("Add", "BatchNormInference"))  # what may lie between the weighted operation and the structure


@dataclass(frozen=True)
class Spelling:
    """The parameters as they stand in the graph; an absent scale or offset is None."""

    mean: Output
    variance: Output
    epsilon: Output | None
    scale: Output | None
    offset: Output | None
    inner: tuple[Node, ...]  # nodes that compute on parameters alone


@dataclass(frozen=True)
class Normalization:
    """A structure: its nodes in the order of the data, and the parameters of what replaces them."""

    nodes: tuple[Node, ...]
    axis: int
    gamma: np.ndarray
    beta: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    epsilon: float
    inner: tuple[Node, ...] = ()


class SmallBatchNormFusion(Fusion):
    """Elementwise operations with parameters per channel become one BatchNormInference.

    Recognized: ``(x - mean) / sqrt(variance + epsilon) [* scale] [+ offset]`` and ``x * k + ([offset] - mean
    * k)`` with ``k = [scale] / sqrt(variance + epsilon)``, division and power in any of their spellings,
    channels first or last; and, simplified, any chain of factors and offsets that was computed beforehand,
    ``x * k [+ s]``. An absent scale becomes ones, an absent offset zeros. Two things must hold: the data
    comes from a convolution or MatMul with constant weights, and no inner node is read from outside.
    """

    operations = tuple(f"opset1.{name}" for name in sorted(ARITHMETIC))

    def concerns(self, node: Node) -> bool:
        if not _is_element(node) or _only_element_below(node) is not None:
            return False
        return any(element.get_type_name() in ("Multiply", "Divide") for element in _chain(node))

    def can_be_transformed(self, node: Node) -> None:
        self.find(node)

    def transform(self, node: Node) -> None:
        found = self.find(node)
        first, last = found.nodes[0], found.nodes[-1]
        normalized = _batch_norm(data_of(first), found, precision_of(last.output(0)))
        normalized.get_node().set_friendly_name(last.get_friendly_name())
        take_over(last.output(0), normalized)

    def find(self, node: Node) -> Normalization:
        """The structure that ends in, or above, this last elementwise operation; raises `Rejected`."""
        chain = _chain(node)
        path = path_above(data_of(chain[0]), output_channel_axis, _ABOVE)
        source = data_of(chain[0]).get_node()
        reject_unless(
            path is not None,
            "not_quantizable",
            f"the data comes from {source.get_type_name()}, which is not a convolution or MatMul with constant weights",
        )
        axis = path.last_axis
        reject_unless(axis > 0, "other_axis", "the output channels lie on axis 0")
        reject_unless(rank_of(node.output(0)) is not None, "dynamic_rank", "the rank of the data is not fixed")
        found = _spelled(chain, axis) or _simplified(chain, axis)
        _check_no_escape(found)
        channels = data_of(chain[0]).get_partial_shape()[axis]
        reject_unless(channels.is_static, "dynamic_channels", "the number of channels is not known")
        return found


def _is_element(node: Node) -> bool:
    return constant_port(node) is not None


def _only_element_below(node: Node) -> Node | None:
    """The one reader, where it is another elementwise operation with a constant."""
    readers = [target.get_node() for target in consumers_of(node.output(0))]
    return readers[0] if len(readers) == 1 and _is_element(readers[0]) else None


def _chain(last: Node) -> list[Node]:
    """The elementwise operations above ``last`` in the order of the data, shared ones too."""
    nodes = [last]
    while _is_element(above := data_of(nodes[-1]).get_node()):
        nodes.append(above)
    return nodes[::-1]


def _check_no_escape(found: Normalization) -> None:
    """No inner node has a reader outside; nor is what looks like the end an inner node itself.

    It is one where one of several readers applies another factor or offset per channel. A scalar, as in the
    activations that are built on sums (hard swish), does not carry a normalization on.
    """
    within = {node.get_instance_id() for node in (*found.nodes, *found.inner)}
    for node in (*found.nodes[:-1], *found.inner):
        for target in consumers_of(node.output(0)):
            outside = target.get_node()
            reject_unless(
                outside.get_instance_id() in within,
                "inner_node_read",
                f"{node.get_friendly_name()} inside the structure is read by {outside.get_friendly_name()}",
            )
    last = found.nodes[-1]
    readers = [target.get_node() for target in consumers_of(last.output(0))]
    for reader in readers if len(readers) > 1 else ():
        carries_on = _is_element(reader) and not _has_scalar(reader)
        reject_unless(
            not carries_on,
            "inner_node_read",
            f"{last.get_friendly_name()}, which {reader.get_friendly_name()} carries on, has another reader",
        )


def _has_scalar(node: Node) -> bool:
    shape = node.get_input_partial_shape(constant_port(node))
    return shape.is_static and np.prod(shape.to_shape()) == 1


def _composed(nodes: Sequence[Node], axis: int) -> Affine:
    affine = IDENTITY
    for node in nodes:
        affine = affine.then(affine_of(node, axis))
    return affine


def _spelled(chain: Sequence[Node], axis: int) -> Normalization | None:
    """The longest run of the chain that spells a normalization with its mean and variance."""
    for length in (4, 3, 2):
        for start in range(len(chain) - length + 1):
            nodes = tuple(chain[start : start + length])
            for spelling in _spellings(nodes):
                if (found := _read(nodes, axis, spelling)) is not None:
                    return found
    return None


def _read(nodes: tuple[Node, ...], axis: int, spelling: Spelling) -> Normalization | None:
    """The numbers of a spelling; None where they are not those of the operations."""
    rank = rank_of(nodes[-1].output(0))
    named = {
        "mean": spelling.mean,
        "variance": spelling.variance,
        "gamma": spelling.scale,
        "beta": spelling.offset,
    }
    values = {}
    for name, value in named.items():
        numbers = evaluate(value) if value is not None else np.full((), float(name == "gamma"))
        values[name] = None if numbers is None else along(numbers, rank, axis)
    epsilon = np.zeros(()) if spelling.epsilon is None else evaluate(spelling.epsilon)
    if epsilon is None or epsilon.size != 1 or any(numbers is None for numbers in values.values()):
        return None
    scale = values["gamma"] / np.sqrt(values["variance"] + epsilon.reshape(()))
    read, actual = Affine(scale, values["beta"] - values["mean"] * scale), _composed(nodes, axis)
    if not (np.allclose(read.scale, actual.scale) and np.allclose(read.offset, actual.offset)):
        return None
    return Normalization(nodes, axis, **values, epsilon=float(epsilon.reshape(())), inner=spelling.inner)


def _simplified(chain: Sequence[Node], axis: int) -> Normalization:
    """The whole chain as one factor and one offset."""
    affine = _composed(chain, axis)
    return Normalization(tuple(chain), axis, affine.scale, affine.offset, np.zeros(()), np.ones(()), 0.0)


def _spellings(nodes: Sequence[Node]) -> Iterator[Spelling]:
    kinds = [node.get_type_name() for node in nodes]
    operands = [node.input_value(constant_port(node)) for node in nodes]
    if kinds[0] == "Multiply" and len(nodes) == 2:
        yield from _multiply_first(kinds[1], *operands)
    if kinds[0] == "Subtract" and constant_port(nodes[0]) == 1 and kinds[1] in ("Divide", "Multiply"):
        yield from _subtract_first(kinds, operands)


def _multiply_first(last: str, factor: Output, offset: Output) -> Iterator[Spelling]:
    """``x * k + (offset - mean * k)``, and without offset ``x * k - mean * k`` or ``x * k + -(mean * k)``."""
    deviation = _inverse_deviation(factor)
    if deviation is None:
        return
    variance, epsilon, scale, inner = deviation
    inner += _wrappers(factor) + _wrappers(offset)
    node = _unwrapped(offset).get_node()
    beta = None
    if last == "Add" and node.get_type_name() == "Subtract":
        beta, product = node.input_values()
    elif last == "Add" and node.get_type_name() == "Negative":
        product = node.input_value(0)
    elif last == "Subtract" or (last == "Add" and node.get_type_name() == "Multiply"):
        product = offset
    else:
        return
    inner += (node, *_wrappers(product))
    product = _unwrapped(product).get_node()
    if product.get_type_name() != "Multiply":
        return
    inner += (product,)
    for mean, other in (product.input_values(), product.input_values()[::-1]):
        if _same(other, factor):
            negated = _unwrapped(mean).get_node()
            if last == "Add" and node.get_type_name() == "Multiply":  # x * k + (-mean) * k
                if negated.get_type_name() != "Negative":
                    return
                mean, inner = negated.input_value(0), (*inner, negated)
            yield Spelling(mean, variance, epsilon, scale, beta, inner)


def _subtract_first(kinds: Sequence[str], operands: Sequence[Output]) -> Iterator[Spelling]:
    """``(x - mean) / deviation [* scale] [+ offset]``."""
    if kinds[2:] not in (["Multiply", "Add"], ["Multiply"], ["Add"], []):
        return
    found = _deviation(operands[1]) if kinds[1] == "Divide" else _inverse_deviation(operands[1])
    if found is None:
        return
    variance, epsilon, scale, inner = found
    if "Multiply" in kinds[2:]:
        if scale is not None:
            return
        scale = operands[2]
    offset = operands[-1] if kinds[-1] == "Add" else None
    yield Spelling(operands[0], variance, epsilon, scale, offset, inner + _wrappers(operands[1]))


_Deviation = tuple[Output, Output | None, Output | None, tuple[Node, ...]]  # variance, epsilon, scale, inner nodes


def _deviation(value: Output) -> _Deviation | None:
    """``sqrt(variance + epsilon)``."""
    node = _unwrapped(value).get_node()
    if not (node.get_type_name() == "Sqrt" or _is_power(node, 0.5)):
        return None
    return _with_epsilon(node.input_value(0), (node,))


def _inverse_deviation(value: Output) -> _Deviation | None:
    """``[scale *] 1 / sqrt(variance + epsilon)``."""
    node = _unwrapped(value).get_node()
    kind = node.get_type_name()
    if _is_power(node, -0.5):
        return _with_epsilon(node.input_value(0), (node,))
    if kind == "Divide" and (found := _deviation(node.input_value(1))) is not None:
        variance, epsilon, _, inner = found
        numerator = evaluate(node.input_value(0))
        is_one = numerator is not None and bool((numerator == 1).all())
        return variance, epsilon, None if is_one else node.input_value(0), (*inner, node)
    if kind == "Multiply":
        for port in (0, 1):
            found = _inverse_deviation(node.input_value(port))
            if found is not None and found[2] is None:
                variance, epsilon, _, inner = found
                inner += (*_wrappers(node.input_value(port)), node)
                return variance, epsilon, node.input_value(1 - port), inner
    return None


def _with_epsilon(value: Output, inner: tuple[Node, ...]) -> _Deviation:
    node = _unwrapped(value).get_node()
    if node.get_type_name() == "Add":
        for port in (1, 0):
            shape = node.get_input_partial_shape(port)
            if shape.is_static and np.prod(shape.to_shape()) == 1:
                return (
                    node.input_value(1 - port),
                    node.input_value(port),
                    None,
                    (*inner, *_wrappers(value), node),
                )
    return value, None, None, inner


def _is_power(node: Node, exponent: float) -> bool:
    if node.get_type_name() != "Power":
        return False
    values = evaluate(node.input_value(1))
    return values is not None and bool((values == exponent).all())


def _unwrapped(value: Output) -> Output:
    while value.get_node().get_type_name() in _WRAPPERS:
        value = value.get_node().input_value(0)
    return value


def _wrappers(value: Output) -> tuple[Node, ...]:
    """The nodes that rearrange a computed parameter; a stored one is a leaf with them and may be shared."""
    nodes = []
    while value.get_node().get_type_name() in _WRAPPERS:
        nodes.append(value.get_node())
        value = value.get_node().input_value(0)
    return () if isinstance(value.get_node(), Constant) else tuple(nodes)


def _same(one: Output, other: Output) -> bool:
    one, other = _unwrapped(one), _unwrapped(other)
    return one.get_node().get_instance_id() == other.get_node().get_instance_id()


def _batch_norm(data: Output, found: Normalization, precision: str) -> Output:
    """A BatchNormInference on the channel axis, between Transposes where that is not axis 1."""
    channels = data.get_partial_shape()[found.axis].get_length()
    order = list(range(rank_of(data)))
    order.insert(1, order.pop(found.axis))
    moved = found.axis != 1
    if moved:
        data = opset1.transpose(data, np.array(order, np.int64)).output(0)
    parameters = [
        constant(np.broadcast_to(values, channels), precision)
        for values in (found.gamma, found.beta, found.mean, found.variance)
    ]
    normalized = opset1.batch_norm_inference(data, *parameters, found.epsilon).output(0)
    if not moved:
        return normalized
    return opset1.transpose(normalized, np.argsort(order)).output(0)
