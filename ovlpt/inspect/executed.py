"""Which executed layer holds an operation, and what is said of an operation once its layer is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from ovlpt.device.execution_types import LayerExecution, execution_types
from ovlpt.device.layer_types import BOUNDARY, CONVERTS, MOVES, MULTIPLYING_LAYERS
from ovlpt.graph.bodies import all_nodes, bodies_of
from ovlpt.graph.constants import precision_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.names import Made, given, made_for, original, renamed
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import CompiledModel, Constant, Model, Node, Output
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.precisions import INT8
from ovlpt.trace import Reason

_FAR = 8
_WITHOUT_RULE = frozenset(("RNNSequence", "LSTMCell", "GRUCell", "RNNCell", "DeformableConvolution"))


def has_weights(operation: str) -> bool:
    """Whether a type of operation multiplies with weights, or with other data as a MatMul can: what int8 speeds up."""
    row = OPERATIONS.get(operation)
    return operation in _WITHOUT_RULE or (row is not None and row.kind == "weighted")


def names_of(layer: LayerExecution) -> list[str]:
    """The name of the layer, and those of the operations that it holds."""
    return [layer.name, *layer.original_names]


def owners(lowered: Model, wanted: Iterable[str]) -> Iterator[tuple[str, Node]]:
    """Names that a layer can have of an operation, each with the operation: the plugin may call the layer after the
    scale or the bias that follows it. ``wanted``: names of operations in the lowered model.
    """
    from ovlpt.device.hazards import epilogue  # here, not above: the algebra below it takes time to import

    wanted = frozenset(wanted)
    for node in all_nodes(lowered):
        name = node.get_friendly_name()
        if name in wanted:
            for each in (name, given(name), made_for(name, Made.OF_VECTOR), *epilogue(node).names[:2]):
                yield each, node


class Layers:
    """The executed layers of a model by the operations that they hold."""

    def __init__(self, execution: Iterable[LayerExecution], lowered: Model):
        weighted = [node.get_friendly_name() for node in all_nodes(lowered) if has_weights(node.get_type_name())]
        owner = dict(owners(lowered, weighted))
        self._nodes = {name: node for node in owner.values() for name in _keys(node)}
        self._weighted: dict[str, LayerExecution] = {}
        self._any: dict[str, LayerExecution] = {}
        for layer in execution:
            if layer.layer_type in BOUNDARY | CONVERTS:
                continue
            names = names_of(layer)
            if layer.layer_type in MULTIPLYING_LAYERS:
                for node in (owner[name] for name in names if name in owner):
                    for key in _keys(node):
                        self._weighted.setdefault(key, layer)
            for name in names:
                known = self._any.setdefault(name, layer)
                if layer.layer_type in MULTIPLYING_LAYERS and known.layer_type not in MULTIPLYING_LAYERS:
                    self._any[name] = layer

    def of(self, name: str, operation: str) -> LayerExecution | None:
        """The layer that holds an operation of the transformed model, of two directions a float one; None where none is
        known to.
        """
        found = self.all_of(name, operation)
        return next((layer for layer in found if not layer.is_int8), found[0] if found else None)

    def all_of(self, name: str, operation: str) -> list[LayerExecution]:
        """The layers: one, those of both directions of a recurrent layer, or none that is known."""
        directions = [made_for(name, made) for made in (Made.FORWARD, Made.REVERSE)]
        found = [self._weighted[each] for each in directions if each in self._weighted]
        if found:
            return found
        named: list[LayerExecution | None] = [self._any.get(original(name)), self._any.get(name)]
        if has_weights(operation):
            named = [layer for layer in named if layer is not None and layer.layer_type not in MOVES]
            own = [self._weighted.get(name), self._weighted.get(renamed(name))]
            named = [*own, *named, self._of_equal(name), self._fused(name)]
        return [layer for layer in named if layer is not None][:1]

    def _fused(self, name: str) -> LayerExecution | None:
        """Of a MatMul the kernel of an attention that holds what alone reads it: these names can be all that it has."""
        node = self.lowered(name)
        for _ in range(_FAR if node is not None and node.get_type_name() == "MatMul" else 0):
            targets = targets_of(node.output(0))
            if len(targets) != 1:
                break
            node = targets[0].get_node()
            if (layer := self._any.get(node.get_friendly_name())) is not None:
                return layer if layer.layer_type == "Subgraph" else None
        return None

    def _of_equal(self, name: str) -> LayerExecution | None:
        """The layer of an operation that does the same to the same data: the plugin runs one of them."""
        node = self.lowered(name)
        for target in targets_of(node.input_value(0)) if node is not None else ():
            other = target.get_node()
            layer = self._weighted.get(other.get_friendly_name())
            if layer is not None and _is_equal(node, other):
                return layer
        return None

    def lowered(self, name: str) -> Node | None:
        """An operation with weights in the model that was compiled."""
        return self._nodes.get(name)


def _is_equal(node: Node, other: Node) -> bool:
    """Whether the plugin makes one operation of both: equal constants are one to it."""

    def same(mine: Output, its: Output) -> bool:
        if isinstance(mine.get_node(), Constant) and isinstance(its.get_node(), Constant):
            return precision_of(mine) == precision_of(its) and np.array_equal(mine.get_node().data, its.get_node().data)
        return (mine.get_node().get_instance_id(), mine.get_index()) == (
            its.get_node().get_instance_id(),
            its.get_index(),
        )

    kinds = [each.get_type_info() for each in (node, other)]
    return (
        kinds[0] == kinds[1]
        and str(node.get_attributes()) == str(other.get_attributes())
        and node.get_input_size() == other.get_input_size()
        and all(map(same, node.input_values(), other.input_values()))
    )


def _keys(node: Node) -> tuple[str, str]:
    return node.get_friendly_name(), renamed(node.get_friendly_name())


def layers_of_bodies(
    model: Model, layers: Sequence[LayerExecution], compile_: Callable[[Model], CompiledModel]
) -> list[LayerExecution]:
    """The layers of the bodies that a compiled model runs, each compiled on its own: its execution graph has one layer
    for an operation with a body, and none for what is in there. A body that cannot be compiled so has none here.
    """
    found: list[LayerExecution] = []
    known = {name for layer in layers for name in names_of(layer)}
    for node in model.get_ordered_ops():
        for body in bodies_of(node) if node.get_friendly_name() in known else ():
            with suppress(RuntimeError):
                own = execution_types(compile_(body.clone()))
                found += [*own, *layers_of_bodies(body, own, compile_)]
    return found


def without_kernel(layer: LayerExecution, node: Node | None = None) -> tuple[Reason, str | None]:
    """Why an operation that reads integers in the transformed model runs in float, and what would help.

    ``node``: the operation with weights in the model that was compiled.
    """
    is_recurrent = node is not None and node.get_type_name() in RECURRENT
    if is_recurrent and node.get_attributes().get("linear_before_reset"):
        text = "it is a GRU with linear_before_reset, for which the plugin has no int8 kernel"
        return Reason("no_kernel", text), "use a GRU without linear_before_reset"
    if node is not None and not is_recurrent and (found := _integers_without_kernel(node)) is not None:
        name, text, advice = found
        return Reason(name, f"{text} ({layer.exec_type})"), advice
    if node is None and layer.precision in INT8:
        text = "it reads integers and computes in float, as the plugin's elementwise kernels do"
        return Reason("float_kernel", text), None
    text = f"it could read integers, but the plugin has no int8 kernel for it here and took {layer.exec_type}"
    return Reason("no_kernel", text), None


def _integers_without_kernel(node: Node) -> tuple[str, str, str] | None:
    """What of the integers that an operation with weights reads no int8 kernel takes: a reason's name and text, and an advice."""
    data, weights = node.input_values()[:2]
    if weights.get_node().get_type_name() == "Subtract":
        text = "its weights have a zero point, for which the plugin has no int8 kernel"
        return "weights_zero_point", text, "quantize the weights symmetrically, to i8"
    values = folded_constant(weights)
    is_whole = values is not None and bool((values == np.rint(values)).all())
    if is_whole and not -128 <= values.min(initial=0) <= values.max(initial=0) <= 127:
        text = "its weights, less their zero point, do not fit i8, which int8 kernels read alone"
        advice = "quantize the weights symmetrically, to i8, or round these with Params.coarser_weights"
        return "weights_range", text, advice
    if node.get_type_name() != "MatMul" and data.get_node().get_type_name() == "Subtract" and _stored_in(data) == "i8":
        text = "its data are i8 with a zero point, for which the plugin has no int8 kernel"
        return "no_kernel", text, "quantize the data to u8, or symmetrically"
    return None


def _stored_in(value: Output) -> str:
    """The type of what an input reads, less its zero point or converted."""
    while value.get_node().get_type_name() in ("Convert", "Subtract"):
        value = value.get_node().input_value(0)
    return precision_of(value)
