"""The executed layers, each with the operations it holds, its work, and the reason when it is float."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ovlpt.device.execution_types import ExecutionTypes, LayerExecution
from ovlpt.device.layer_types import BOUNDARY, CONVERTS, MOVES, MULTIPLYING_LAYERS
from ovlpt.graph.names import is_dequantization, renamed
from ovlpt.inspect.executed import names_of, owners, without_kernel
from ovlpt.inspect.explain.answers import Answer, Explanation
from ovlpt.inspect.report.multiply_accumulates import multiply_accumulates, values_touched, work_of_bodies
from ovlpt.openvino_api import CompiledModel, Model, Node
from ovlpt.precisions import INT8, REAL
from ovlpt.trace import Reason

_MOVES_IN_ANY_CASE = frozenset(map(str.casefold, MOVES))


class Kind(StrEnum):
    """What a layer's time is spent on."""

    INT8 = "int8"
    FLOAT = "float"
    BORDER = "border"  # between the two: it reorders, quantizes or dequantizes
    MOVEMENT = "movement"  # values of any type to another place; nothing is computed
    OTHER = "other"  # indices, shapes, masks; the model's inputs and outputs


@dataclass(frozen=True, slots=True)
class Layer:
    """One executed layer.

    ``milliseconds``: real time (`execution_types`). ``operations``: names of what it holds. ``answer``: of the operation that keeps it
    in float; None for another kind of layer, and for one that the plugin made. ``inputs``: indices of the layers it
    reads. ``weighted``: names of the operations with multiply-accumulates. ``int8_multiply_accumulates``: those of
    operations in int8; an attention that is fused into one kernel has MatMuls in int8 and in float, and counts as float.
    ``values``: how many elements the operations with multiply-accumulates read and write, weights included.
    """

    index: int
    name: str
    type: str
    exec_type: str
    precision: str
    output_precision: str
    milliseconds: float
    multiply_accumulates: int
    kind: Kind
    executed: bool
    operations: tuple[str, ...]
    inputs: tuple[int, ...]
    weighted: tuple[str, ...] = ()
    int8_multiply_accumulates: int = 0
    values: int = 0
    answer: Answer | None = None

    @property
    def is_low(self) -> bool:
        """Whether it computes on integers of 8 bits, or moves such."""
        return self.kind is Kind.INT8 or (self.kind is Kind.MOVEMENT and self.precision in INT8)

    @property
    def reason(self) -> Reason | None:
        return self.answer.reason if self.answer else None

    def to_json(self) -> dict[str, object]:
        fields = ("name", "type", "exec_type", "precision", "output_precision", "milliseconds", "multiply_accumulates")
        return {
            **{field: getattr(self, field) for field in fields},
            "kind": str(self.kind),
            "executed": self.executed,
            "operations": list(self.operations),
            "inputs": list(self.inputs),
            "reason": {"code": self.reason.code, "text": self.reason.text} if self.reason else None,
            "root": self.answer.root if self.answer else None,
            "help": self.answer.help if self.answer else None,
        }


def read_layers(
    compiled: CompiledModel, execution: ExecutionTypes, lowered: Model, shaped: Model, found: Explanation
) -> list[Layer]:
    """The nodes of the execution graph in its order, inputs and outputs of the model included, constants not.

    ``lowered``: the model that was compiled. ``shaped``: the same with the shapes that were run. ``found``: why its
    operations are in float.
    """
    work = {node.get_friendly_name(): multiply_accumulates(node) for node in shaped.get_ops()}
    touched = {node.get_friendly_name(): values_touched(node) for node in shaped.get_ops()}
    owner = dict(owners(lowered, (name for name, count in work.items() if count)))
    answers = {answer.node: answer for answer in found}
    nodes = list(on_data(compiled.get_runtime_model()))
    index = {node.get_friendly_name(): at for at, node in enumerate(nodes)}
    by_name = {layer.name: layer for layer in execution}
    layers: list[Layer] = []
    counted: set[str] = set()
    for at, node in enumerate(nodes):
        layer = by_name[node.get_friendly_name()]
        fused = layer.layer_type not in MULTIPLYING_LAYERS  # of its operations each has its own precision
        names = [each for each in names_of(layer) if not fused or _is_own(each, owner)]
        held = {holder.get_friendly_name(): holder for each in names if (holder := owner.get(each))}
        own = held.keys() - counted
        counted |= own
        low = [name for name in held if layer.is_int8 and not (fused and renamed(name) in answers)]
        mixed = layer.is_int8 and len(low) < len(held)
        answer = _answer(layer, held.values(), answers, found, mixed)
        layers.append(
            Layer(
                index=at,
                name=layer.name,
                type=layer.layer_type,
                exec_type=layer.exec_type,
                precision=layer.precision,
                output_precision=layer.output_precision,
                milliseconds=layer.real_time,
                multiply_accumulates=sum(work[name] for name in own),
                int8_multiply_accumulates=sum(work[name] for name in own.intersection(low))
                + _int8_work_of_bodies((held[name] for name in own), answers),
                values=sum(touched[name] for name in own),
                kind=Kind.FLOAT if mixed else _kind(layer, answer),
                executed=layer.is_executed,
                operations=layer.original_names,
                inputs=tuple(index[name] for name in _sources(node) if name in index),
                weighted=tuple(map(renamed, held)),
                answer=answer,
            )
        )
    return layers


def _sources(node: Node) -> list[str]:
    return [value.get_node().get_friendly_name() for value in node.input_values()]


def _int8_work_of_bodies(nodes: Iterable[Node], answers: Mapping[str, Answer]) -> int:
    """The multiply-accumulates inside of Loops, of operations that have no answer: whose kernels are not visible."""
    inner = (each for node in nodes for each in work_of_bodies(node))
    return sum(count for node, count in inner if renamed(node.get_friendly_name()) not in answers)


def on_data(runtime: Model) -> Iterator[Node]:
    """The nodes of an execution graph that an input of the model reaches."""
    reached: set[str] = set()
    for node in runtime.get_ordered_ops():
        if node.get_type_name() == "Parameter" or not reached.isdisjoint(_sources(node)):
            reached.add(node.get_friendly_name())
            yield node


def _answer(
    layer: LayerExecution, weighted: Iterable[Node], answers: Mapping[str, Answer], found: Explanation, mixed: bool
) -> Answer | None:
    """Why the layer is float: what is said of its weighted operation, or of the first other one that has an answer.

    ``mixed``: some of its weighted operations are float.
    """
    if mixed:
        return next(answers[name] for node in weighted if (name := renamed(node.get_friendly_name())) in answers)
    if layer.is_int8 or not _is_float(layer) or layer.layer_type in CONVERTS:
        return None
    for node in weighted:
        name = renamed(node.get_friendly_name())
        if name in answers:  # first: what an attention becomes shares its name, and part of it may be in low precision
            return answers[name]
        if name in found.low_names:
            return _without_kernel(layer, node.get_type_name(), name, node)
    names = list(dict.fromkeys(map(renamed, names_of(layer))))
    for name in names:
        if name in answers and answers[name].root_reason.code != "bias":
            return answers[name]
    for name in names:
        if found.low_names.get(name, "FakeQuantize") != "FakeQuantize":
            return _without_kernel(layer, found.low_names[name], name)
    return None


def _without_kernel(layer: LayerExecution, operation: str, name: str, node: Node | None = None) -> Answer:
    """For an operation that reads integers in the transformed model, and runs in float all the same."""
    reason, help_ = without_kernel(layer, node)
    return Answer(operation, name, reason, (), help_, node is not None, f"{operation} {name}", reason)


def _is_own(name: str, owner: Mapping[str, Node]) -> bool:
    """Whether the name is that of an operation with work itself, not of a scale or bias that follows it."""
    return name in owner and owner[name].get_friendly_name() == name


def _is_float(layer: LayerExecution) -> bool:
    """Whether it reads or gives floats, or computes in them between integers of 8 bits: an activation may."""
    kernel = layer.exec_type.lower().rsplit("_", 1)[-1]
    return not {layer.precision, layer.output_precision}.isdisjoint(REAL) or (
        layer.precision in INT8 and kernel in REAL
    )


def _kind(layer: LayerExecution, answer: Answer | None) -> Kind:
    if layer.layer_type.casefold() in _MOVES_IN_ANY_CASE and (layer.is_int8 or _is_float(layer)):
        return Kind.MOVEMENT
    if layer.layer_type in CONVERTS and (layer.is_int8 or _is_float(layer)):
        return Kind.BORDER if _is_float(layer) else Kind.MOVEMENT
    if layer.is_int8:
        return Kind.INT8
    if layer.layer_type in BOUNDARY:
        return Kind.OTHER
    if answer is not None:
        return Kind.FLOAT
    if not _is_float(layer):
        return Kind.OTHER
    only_converts = {layer.precision, layer.output_precision} - set(REAL) or all(
        is_dequantization(name) for name in layer.original_names
    )
    return Kind.BORDER if only_converts else Kind.FLOAT


def with_shapes(model: Model, arrays: Sequence[np.ndarray]) -> Model:
    """The model itself where its shapes are static, else a copy for these inputs."""
    if all(port.get_partial_shape().is_static for port in model.inputs):
        return model
    shaped = model.clone()
    shaped.reshape({at: list(array.shape) for at, array in enumerate(arrays)})
    return shaped
