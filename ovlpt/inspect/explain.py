"""Why is this layer not int8?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ovlpt.config import PluginConfig
from ovlpt.device import transform
from ovlpt.device.hazards import Hazard, hazards
from ovlpt.graph.constants import precision_of
from ovlpt.openvino_api import Constant, Core, Model, Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import is_low
from ovlpt.trace import Event, Outcome, Reason, Trace

_NO_COMPUTATION = frozenset(("Constant", "Parameter", "Result", "Convert", "ShapeOf", "Assign", "ReadValue"))
# What a transformation says of a node that it met on its way, while another decides about it.
_INCIDENTAL = frozenset(("decomposed", "no_elementwise", "weights", "transformed_before"))

_HELP = {
    "per_channel_activations": "quantize these activations per tensor",
    "weights_not_quantized": "quantize the weights",
    "weights_levels": "quantize the weights to 255 or 256 levels",
    "weights_zero_point": "quantize the weights symmetrically",
    "weights_granularity": "quantize the weights per output channel or per tensor",
    "levels": "quantize to 256 levels",
    "zero_point": "quantize symmetrically",
    "not_quantized": "put a FakeQuantize on this input",
    "restriction": "lift the restriction",
    "callback": "change the callback",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One operation that is not in low precision, and why."""

    operation: str
    name: str
    reason: Reason
    upstream: tuple[str, ...]  # from the operation up to where the quantization was lost
    help: str | None  # what would change it

    def to_json(self) -> dict[str, object]:
        return asdict(self)


class Explanation(Sequence[Answer]):
    """The answers for one model, weighted operations first."""

    def __init__(self, answers: Sequence[Answer], low: Counter, total: Counter, hazards: Sequence[Hazard] = ()):
        self._answers = sorted(answers, key=lambda answer: not is_weighted(answer.operation))
        self.hazards = list(hazards)  # layers whose numbers the plugin changes
        self.low, self.total = low, total  # per operation: nodes in low precision, and all

    def __getitem__(self, index):
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @property
    def quantizable(self) -> list[Answer]:
        """Weighted operations that stay in float although something above them is quantized."""
        return [answer for answer in self if is_weighted(answer.operation) and answer.reason.code != "no_fake_quantize"]


def is_weighted(operation: str) -> bool:
    row = OPERATIONS.get(operation)
    return row is not None and row.kind == "weighted"


def explain(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
) -> Explanation:
    """Transform a copy of the model and say of each operation that is not in low precision why.

    Raises `InputError` as `transform` does.
    """
    trace = Trace()
    result = transform(model, device, config, lowered=False, native_only=native_only, core=core, trace=trace)
    events: dict[str, list[Event]] = {}
    for event in trace:
        if event.reason is not None and event.reason.code not in _INCIDENTAL:
            events.setdefault(event.node, []).append(event)
    low, total, answers = Counter(), Counter(), []
    for node in result.get_ordered_ops():
        kind = node.get_type_name()
        if kind in _NO_COMPUTATION or _is_dequantization(node) or _is_constant(node):
            continue
        total[kind] += 1
        if _in_low_precision(node):
            low[kind] += 1
        else:
            answers.append(_answer(node, events))
    return Explanation(answers, low, total, hazards(result))


def _is_dequantization(node: Node) -> bool:
    return "/Dequantization" in node.get_friendly_name() or (
        node.get_type_name() in ("Multiply", "Subtract")
        and isinstance(node.input_value(1).get_node(), Constant)
        and node.input_value(0).get_node().get_friendly_name() == f"{node.get_friendly_name()}_original"
    )


def _is_constant(node: Node) -> bool:
    return bool(node.input_values()) and all(isinstance(value.get_node(), Constant) for value in node.input_values())


def _in_low_precision(node: Node) -> bool:
    if node.get_type_name() == "FakeQuantize":
        return is_low(precision_of(node.output(0)))
    return any(is_low(_precision_read(value)) for value in node.input_values() if not isinstance(value.get_node(), Constant))


def _precision_read(value) -> str:
    """A zero point in front counts as part of the operation that reads it."""
    source = value.get_node()
    if source.get_type_name() == "Subtract" and is_low(precision_of(source.input_value(0))):
        return precision_of(source.input_value(0))
    return precision_of(value)


def _answer(node: Node, events: dict[str, list[Event]]) -> Answer:
    kind, name = node.get_type_name(), node.get_friendly_name().removesuffix("_original")
    row, said = OPERATIONS.get(kind), events.get(name, [])
    if row is None or row.kind == "absent":
        reason = row.why_absent if row is not None else Reason("no_rule", f"there is no rule for {kind}")
    elif said:
        decisive = [event for event in said if event.outcome is not Outcome.REJECTED] or said
        reason = decisive[-1].reason
    else:
        reason = Reason("not_quantized", "its inputs come in float")
    chain = _lost(node)
    if reason.code == "not_quantized":
        end = chain[-1] if chain else None
        if end is None or end.get_type_name() in ("Parameter", "ReadValue"):
            reason = Reason("no_fake_quantize", "there is no FakeQuantize between it and the model's input")
        elif end.get_type_name() == "FakeQuantize":
            spoken = events.get(end.get_friendly_name(), [])
            why = spoken[-1].reason.text if spoken else "no consumer takes low precision"
            reason = Reason("fake_quantize_stays", f"the FakeQuantize above stays in float: {why}")
        else:
            reason = Reason("lost_upstream", f"the quantization above is lost at {end.get_type_name()} {end.get_friendly_name()}")
    upstream = tuple(f"{each.get_type_name()} {each.get_friendly_name()}" for each in chain)
    return Answer(kind, name, reason, upstream, _HELP.get(reason.code))


def _lost(node: Node) -> list[Node]:
    """The operations above, along the data input, up to where low precision ends or never began."""
    chain: list[Node] = []
    while node.input_values() and len(chain) < 20:
        node = node.input_value(0).get_node()
        if isinstance(node, Constant):
            break
        if _is_dequantization(node):
            continue
        chain.append(node)
        if node.get_type_name() in ("FakeQuantize", "Parameter", "ReadValue") or _in_low_precision(node):
            break
    return chain
