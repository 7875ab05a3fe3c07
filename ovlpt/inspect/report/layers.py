"""The executed layers, each with the operations it holds, its work, and the reason when it is float."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ovlpt.device.execution_types import ExecutionTypes, LayerExecution
from ovlpt.device.hazards import behind
from ovlpt.inspect.explain import Answer, Explanation
from ovlpt.inspect.report.multiply_accumulates import multiply_accumulates
from ovlpt.openvino_api import CompiledModel, Model, Node
from ovlpt.precisions import REAL
from ovlpt.trace import Reason

_CONVERTS = frozenset(("Reorder", "Convert"))  # layers that change a type or a layout, and nothing else
_SUFFIXES = ("_original", "/Rank3", "/Guard", "/Scale", "/WithoutBiases")


class Kind(StrEnum):
    """What a layer's time is spent on."""

    INT8 = "int8"
    FLOAT = "float"
    BORDER = "border"  # between the two: it reorders, quantizes or dequantizes
    OTHER = "other"  # indices, shapes, masks


@dataclass(frozen=True, slots=True)
class Layer:
    """One executed layer.

    ``milliseconds``: mean real time. ``operations``: names of what it holds. ``answer``: of the operation that keeps it
    in float; None for another kind of layer, and for one that the plugin made. ``inputs``: indices of the layers it
    reads.
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
    answer: Answer | None = None

    @property
    def reason(self) -> Reason | None:
        return self.answer.reason if self.answer else None

    def to_json(self) -> dict[str, object]:
        fields = ("name", "type", "exec_type", "precision", "output_precision", "milliseconds", "multiply_accumulates")
        return {
            **{field: getattr(self, field) for field in fields},
            "kind": str(self.kind),
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
    owners = dict(_owners(lowered, work))
    answers = {answer.name: answer for answer in found}
    nodes = list(_on_data(compiled.get_runtime_model()))
    index = {node.get_friendly_name(): at for at, node in enumerate(nodes)}
    by_name = {layer.name: layer for layer in execution}
    layers, counted = [], set()
    for at, node in enumerate(nodes):
        layer = by_name[node.get_friendly_name()]
        held = [name for name in dict.fromkeys(owners.get(each) for each in _names(layer)) if name]
        own = [name for name in held if name not in counted]
        counted.update(own)
        answer = _answer(layer, held, answers, found)
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
                kind=_kind(layer, answer),
                executed=layer.is_executed,
                operations=layer.original_names,
                inputs=tuple(
                    index[name]
                    for value in node.input_values()
                    if (name := value.get_node().get_friendly_name()) in index
                ),
                answer=answer,
            )
        )
    return layers


def _on_data(runtime: Model) -> Iterator[Node]:
    """The nodes of an execution graph that an input of the model reaches."""
    reached: set[str] = set()
    for node in runtime.get_ordered_ops():
        sources = [value.get_node().get_friendly_name() for value in node.input_values()]
        if node.get_type_name() == "Parameter" or not reached.isdisjoint(sources):
            reached.add(node.get_friendly_name())
            yield node


def _owners(lowered: Model, work: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Names that a layer can have of an operation with work, each with the operation's own: the plugin may call the
    layer after the scale or the bias behind it.
    """
    for node in lowered.get_ordered_ops():
        name = node.get_friendly_name()
        if work.get(name):
            for each in (name, name.removesuffix("_original"), *behind(node).names[:2]):
                yield each, name


def _names(layer: LayerExecution) -> list[str]:
    return [layer.name, *layer.original_names]


def _plain(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _answer(
    layer: LayerExecution, weighted: Sequence[str], answers: dict[str, Answer], found: Explanation
) -> Answer | None:
    """Why the layer is float: what is said of its weighted operation, or of the first other one that has an answer."""
    if layer.is_int8 or not _is_float(layer) or layer.layer_type in _CONVERTS:
        return None
    names = [name for name in dict.fromkeys(map(_plain, (*weighted, *_names(layer)))) if name]
    for name in names:
        if name in answers and answers[name].root_reason.code != "bias":
            return answers[name]
    computing = [name for name in names if found.low_names.get(name, "FakeQuantize") != "FakeQuantize"]
    if not computing:
        return None
    operation = found.low_names[computing[0]]
    text = f"it could read integers, but the plugin has no int8 kernel for it here and took {layer.exec_type}"
    reason = Reason("no_kernel", text)
    return Answer(operation, computing[0], reason, (), None, True, f"{operation} {computing[0]}", reason)


def _is_float(layer: LayerExecution) -> bool:
    return layer.precision in REAL or layer.output_precision in REAL


def _kind(layer: LayerExecution, answer: Answer | None) -> Kind:
    if layer.is_int8:
        return Kind.INT8
    if layer.layer_type in _CONVERTS and _is_float(layer):
        return Kind.BORDER
    if answer is not None:
        return Kind.FLOAT
    if not _is_float(layer):
        return Kind.OTHER
    only_converts = {layer.precision, layer.output_precision} - set(REAL) or all(
        "/Dequantization" in name for name in layer.original_names
    )
    return Kind.BORDER if only_converts else Kind.FLOAT


def with_shapes(model: Model, arrays: Sequence[np.ndarray]) -> Model:
    """The model itself where its shapes are static, else a copy for these inputs."""
    if all(port.get_partial_shape().is_static for port in model.inputs):
        return model
    shaped = model.clone()
    shaped.reshape({at: list(array.shape) for at, array in enumerate(arrays)})
    return shaped
