"""Why is this layer not int8?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import transform
from ovlpt.device.compile import inference_precision, lpt_properties
from ovlpt.device.execution_types import execution_types, last_line
from ovlpt.device.layer_types import MULTIPLYING_LAYERS
from ovlpt.device.loading import label_of, read_quantized, rounds_data
from ovlpt.device.overflow import OverflowRisk, overflow_risks
from ovlpt.device.properties import F32, LATENCY
from ovlpt.display import html_table, to_frame
from ovlpt.graph.bodies import all_nodes, bodies_of, with_bodies
from ovlpt.graph.constants import is_constant_path, precision_of
from ovlpt.graph.consumers import is_output, targets_of
from ovlpt.graph.names import dequantization, given, is_dequantization, original
from ovlpt.inspect.advice import Advice, QuantizeWeights, Requantize, in_order
from ovlpt.inspect.conditions import (
    BECOME_PRODUCTS,
    DATA,
    WEIGHTS,
    Lack,
    data_ports,
    kernel_limit,
    lacks,
    quantize_input,
    title,
    weights_ports,
)
from ovlpt.inspect.executed import Layers, has_weights, layers_of_bodies, without_kernel
from ovlpt.inspect.user_names import UserNames
from ovlpt.low_precision import REWRITES
from ovlpt.openvino_api import Constant, Core, Model, Node, Output
from ovlpt.operations import OPERATIONS, RECURRENT, operation_of
from ovlpt.own_transformations import knows_own_operations
from ovlpt.precisions import INT4, INT8, INT16, REAL
from ovlpt.reasons import ROWS, Cause
from ovlpt.trace import Event, InputError, Outcome, Reason, Trace

if TYPE_CHECKING:
    from ovlpt.device.hazards import Hazard

_NO_COMPUTATION = frozenset(("Constant", "Parameter", "Result", "Convert", "ShapeOf", "Assign", "ReadValue"))
_SOURCES = frozenset(("Parameter", "ReadValue"))
_LOW = frozenset((*INT8, *INT16, *INT4))
_PROPERTIES = {**LATENCY, **F32}
_DYNAMIC = "its data is quantized dynamically, with scales that each inference computes"
_NO_LAYER = Reason(
    "no_layer",
    "it could read integers, but no executed layer is known to contain it, so it may or may not be in int8",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. ``root``: type and name of the operation whose condition decides."""

    reason: Reason
    root: str
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One operation that is not in low precision, and why. Names are those of the model that was given."""

    operation: str
    name: str
    reason: Reason
    upstream: tuple[str, ...]  # from the operation up to where the quantization was lost
    help: str | None  # what would change it
    quantizable: bool  # an operation with weights and a quantization above its data
    root: str  # the operation whose condition decides: itself, or one above or below it
    root_reason: Reason  # that condition
    node: str = ""  # the operation's name in the transformed model
    layer: str | None = None  # kernel and type with which it was executed; None where that is not known
    part_of: str | None = None  # the layer with weights that it was executed as a part of
    causes: tuple[Finding, ...] = ()  # of an operation with weights: all of them, the one of ``reason`` first

    @property
    def advices(self) -> list[Advice]:
        """What would turn an operation with weights into int8, to be applied in this order; empty if nothing is known to."""
        return in_order(finding.advice for finding in self.causes if finding.advice is not None)

    @property
    def why(self) -> str:
        """All causes in one line."""
        return "; and ".join(dict.fromkeys(finding.reason.text for finding in self.causes)) or self.reason.text

    def to_json(self) -> dict[str, object]:
        fields = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        reasons = {key: asdict(fields[key]) for key in ("reason", "root_reason")}
        causes = [
            {"reason": asdict(each.reason), "root": each.root, "advice": str(each.advice) if each.advice else None}
            for each in self.causes
        ]
        return {**fields, **reasons, "upstream": list(self.upstream), "causes": causes}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the transformed model; without an ``answer`` it is in low precision."""

    kind: str
    node: str
    name: str
    answer: Answer | None


class Explanation(Sequence[Answer]):
    """The answers for one model, operations with weights first. ``executed``: they follow the compiled model; else the graph."""

    def __init__(
        self,
        operations: Sequence[Operation],
        hazards: Sequence[Hazard] = (),
        overflow_risks: Sequence[OverflowRisk] = (),
        executed: bool = False,
    ):
        self.operations, self.executed = list(operations), executed
        self._answers = sorted(
            (each.answer for each in operations if each.answer), key=lambda answer: not has_weights(answer.operation)
        )
        self.hazards = list(hazards)  # layers whose numbers the plugin changes
        self.overflow_risks = list(overflow_risks)  # layers that can overflow on CPUs without VNNI
        low = [each for each in operations if each.answer is None]
        # name to operation, of those in low precision; names of the given and of the transformed model
        self.low_names = {each.name: each.kind for each in low} | {each.node: each.kind for each in low}
        self.low, self.total = Counter(each.kind for each in low), Counter(each.kind for each in operations)

    def __getitem__(self, index):
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def summary(self) -> dict[str, tuple[int, int]]:
        """Per operation: (number, of them in low precision)."""
        return {kind: (count, self.low[kind]) for kind, count in sorted(self.total.items())}

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "headline": self.headline,
            "executed": self.executed,
            "summary": {kind: {"total": total, "int8": low} for kind, (total, low) in self.summary().items()},
            "answers": [answer.to_json() for answer in self],
            "hazards": [hazard.to_json() for hazard in self.hazards],
            "overflow_risks": [risk.to_json() for risk in self.overflow_risks],
        }

    @property
    def headline(self) -> str:
        """The answer in one sentence: how many layers with weights run in int8."""
        weighted = [each for each in self.operations if has_weights(each.kind)]
        low, total = sum(each.answer is None for each in weighted), len(weighted)
        if not total:
            return "there are no layers with weights"
        layers = "layer" if total == 1 else "layers"
        if self.executed:
            return f"{low} of {total} {layers} with weights {'runs' if total == 1 else 'run'} in int8"
        return f"{low} of {total} {layers} with weights can run in int8 as far as the graph says; nothing was compiled"

    def to_frame(self):
        """The answers as a pandas DataFrame. Raises `InputError` without pandas."""
        return to_frame(*self._rows())

    def _repr_html_(self) -> str:
        return html_table(*self._rows(), caption=self.headline)

    def _rows(self) -> tuple[Sequence[str], list[Sequence[object]]]:
        return ("operation", "name", "why", "what would help"), [
            (answer.operation, answer.name, answer.why, answer.help or "") for answer in self
        ]

    @property
    def quantizable(self) -> list[Answer]:
        """Operations with weights that stay in float although something above them is quantized."""
        return [answer for answer in self if answer.quantizable]

    @property
    def layers(self) -> list[Answer]:
        """The answers without those for operations that are fused into a layer with weights: biases, activations."""
        return [answer for answer in self if answer.part_of is None and not ROWS[answer.reason.code].incidental]

    def groups(self) -> list[list[Answer]]:
        """The answers for layers with weights, grouped by cause, the largest group first."""
        groups: dict[tuple[str, ...], list[Answer]] = {}
        for answer in self:
            if has_weights(answer.operation):
                codes = ",".join(each.reason.code for each in answer.causes)
                key = answer.operation, answer.root.split(" ", 1)[0], answer.root_reason.code, codes
                groups.setdefault(key, []).append(answer)
        return sorted(groups.values(), key=lambda group: -len(group))

    def of(self, name: str) -> Answer | None:
        """The answer for one operation; None when it is in low precision. Raises `InputError` for an unknown name."""
        found = next((answer for answer in self if name in (answer.name, answer.node)), None)
        if found is None and name not in self.low_names:
            from difflib import get_close_matches  # here, not above: for sentences about mistakes only

            near = get_close_matches(name, [*self.low_names, *(answer.name for answer in self)], 1)
            hint = (
                f'; did you mean "{near[0]}"?'
                if near
                else "; without --layer all that are not in low precision are listed"
            )
            raise InputError(f'no operation "{name}" in the transformed model{hint}')
        return found


@other_names(plugin="config", device_name="device")
@knows_own_operations
def explain(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    graph_only: bool = False,
) -> Explanation:
    """Transform and compile a copy of the model, and say for each operation that is not executed in low precision why.

    ``graph_only``: nothing is compiled; the transformed graph is read instead, which is faster and needs no device, but
    does not show where the plugin has no kernel. Raises `InputError` as `transform` does, for a model that is
    transformed already, and for one that the device cannot compile.
    """
    core = core or Core()
    source = read_quantized(model, core)
    trace = Trace()
    result = transform(source, device, config, lowered=False, native_only=native_only, core=core, trace=trace)
    found = explanation(result, trace, native_only, source)
    if graph_only:
        return diagnosed(found, source)
    precision = inference_precision(core, plugin_config.physical_devices(core, device)[0], _PROPERTIES)
    ready = transform(result, device, config, core=core, serializable=False, precision=precision)
    properties = {**_PROPERTIES, **lpt_properties(ready, device)}
    try:
        layers = execution_types(core.compile_model(ready, device, properties))
    except RuntimeError as error:
        raise InputError(
            f"{device} cannot compile {label_of(model, source)}, so that nothing is executed: {last_line(error)}; "
            "with graph_only (--graph-only) the answers are of the graph"
        ) from error
    inner = layers_of_bodies(ready, layers, lambda each: core.compile_model(each, device, properties))
    return diagnosed(as_executed(found, Layers([*layers, *inner], ready)), source)


def explanation(
    transformed: Model, trace: Trace, native_only: bool = False, source: Model | None = None
) -> Explanation:
    """What the graph says of a model that was transformed with ``trace``, and not lowered.

    ``source``: the model that was given, for its names.
    """
    from ovlpt.device.hazards import hazards  # here, not above: the algebra below it takes time to import

    operations = [
        each
        for part in with_bodies(transformed)
        for each in _Answers(part, trace, native_only, UserNames(source, part), part is not transformed).all()
    ]
    return Explanation(operations, hazards(transformed), overflow_risks(transformed))


def as_executed(found: Explanation, layers: Layers) -> Explanation:
    """The answers corrected by the layers that hold the operations. Operations in no known layer keep their answer, as the
    plugin may have computed them while it compiled; but one with weights is not said to be in low precision.
    """
    operations = [_as_executed(each, layers) for each in found.operations]
    return Explanation(operations, found.hazards, found.overflow_risks, executed=True)


def _as_executed(operation: Operation, layers: Layers) -> Operation:
    layer = layers.of(operation.node, operation.kind)
    answer, weighted = operation.answer, has_weights(operation.kind)
    if layer is None:
        return replace(operation, answer=_answered(operation, _NO_LAYER)) if weighted and answer is None else operation
    kernel = f"{layer.layer_type} {layer.exec_type}"
    if layer.layer_type not in MULTIPLYING_LAYERS:  # of operations fused into one kernel each has its own precision
        moved = layer.name != operation.node or layer.precision not in REAL
        is_low = answer is None and (layer.is_int8 if weighted else moved)
        if operation.kind == "FakeQuantize":
            is_low = answer is None
    elif weighted or layer.is_int8:
        is_low = layer.is_int8
    else:
        is_low = False
    if is_low:
        return replace(operation, answer=None)
    part_of = layer.name if layer.layer_type in MULTIPLYING_LAYERS and not weighted else None
    if answer is None:
        reason, help_ = without_kernel(layer, layers.lowered(operation.node) if weighted else None)
        answer = _answered(operation, reason, help_)
    return replace(operation, answer=replace(answer, layer=kernel, part_of=part_of))


def _answered(operation: Operation, reason: Reason, help_: str | None = None) -> Answer:
    title, weighted = f"{operation.kind} {operation.name}", has_weights(operation.kind)
    return Answer(operation.kind, operation.name, reason, (), help_, weighted, title, reason, operation.node)


def diagnosed(found: Explanation, source: Model) -> Explanation:
    """All causes for operations with weights, with advice for the model that was given."""
    given = {node.get_friendly_name(): node for node in all_nodes(source)}
    operations = [
        replace(each, answer=_diagnosed(each.answer, given[each.name]))
        if each.answer is not None and has_weights(each.kind) and each.name in given
        else each
        for each in found.operations
    ]
    return Explanation(operations, found.hazards, found.overflow_risks, found.executed)


def _diagnosed(answer: Answer, node: Node) -> Answer:
    if not has_weights(node.get_type_name()) and node.get_type_name() not in BECOME_PRODUCTS:
        return replace(answer, causes=(Finding(answer.reason, answer.root),))
    if (final := kernel_limit(node, answer.layer)) is not None:
        only = Finding(final, title(node))
        return replace(
            answer, reason=final, root=only.root, root_reason=final, help=ROWS[final.code].help, causes=(only,)
        )
    code = answer.root_reason.code
    if code in ("dynamic_scales", _NO_LAYER.code) or _is_final(answer, node):
        return replace(answer, causes=(Finding(answer.reason, answer.root),))
    where = WEIGHTS if ROWS[code].of_weights and answer.reason.code != "lost_upstream" else DATA
    found = lacks(node)
    ports = data_ports(node)
    are_activations = (len(ports) > 1 and where is WEIGHTS) or ports == [1]
    if are_activations:  # what a transformation calls weights
        where, code = DATA, ROWS[code].for_data or code
        answer = replace(answer, reason=Reason(code, answer.reason.text), root_reason=Reason(code, answer.reason.text))
    same = [lack for lack in found if lack.where == where]
    others = [Finding(lack.reason, lack.root, lack.advice) for lack in found if lack.where != where]
    own = Finding(answer.reason, answer.root, _advice(answer, node, where))
    if found and (ROWS[code].vague or are_activations or _is_quantized_above(answer, same)):
        causes, others = [Finding(lack.reason, lack.root, lack.advice) for lack in found], []
    elif same:
        own, *more = (Finding(lack.reason, lack.root, lack.advice) for lack in same)
        causes = [replace(own, reason=answer.reason, root=answer.root) if own.advice else own, *more]
    elif code == "weights_not_quantized":
        text = "its weights are quantized, but not to one scale per output channel or for all of them"
        causes = [] if others else [replace(own, reason=Reason("weights_granularity", text))]
    else:
        causes = [own]
    causes += others
    advices = "; ".join(dict.fromkeys(str(each.advice) for each in causes if each.advice))
    if causes[0].reason is not answer.reason:
        reason = causes[0].reason
        answer = replace(answer, reason=reason, root=causes[0].root, root_reason=reason, help=ROWS[reason.code].help)
    return replace(answer, help=advices or answer.help, causes=tuple(causes))


def _is_quantized_above(answer: Answer, found: Sequence[Lack]) -> bool:
    """Whether the data is quantized as no kernel takes it; of 16 bits, which are dropped, the result shows nothing."""
    if answer.reason.code in ("no_fake_quantize", "lost_upstream", "float_result"):
        return any(lack.reason.code == "levels" for lack in found)
    return bool(found) and answer.reason.code == "fake_quantize_stays"


def _is_final(answer: Answer, node: Node) -> bool:
    """Whether a layer stays in float however it is quantized: one without a rule, and a recurrent one by its form or by
    its numbers.
    """
    if answer.reason.code == "no_rule":
        return True
    return node.get_type_name() in RECURRENT and ROWS[answer.root_reason.code].cause in (Cause.GRAPH, Cause.HARDWARE)


def _advice(answer: Answer, node: Node, where: str) -> Advice | None:
    """Where the given model shows no lack, and a transformation or the plugin refuses all the same."""
    row = ROWS[answer.root_reason.code]
    if row.code == "constant_data" or row.cause in (Cause.SETTINGS, Cause.HARDWARE):
        return None
    if where is WEIGHTS:
        return QuantizeWeights(node.get_type_name(), node.get_friendly_name(), weights_ports(node))
    kinds = {port: node.input_value(port).get_node().get_type_name() for port in data_ports(node)}
    port = next((port for port, kind in kinds.items() if kind != "FakeQuantize"), None)
    if port is None:
        return Requantize(node.input_value(max(kinds)).get_node().get_friendly_name(), signed=True)
    return quantize_input(node, port)


def is_answerable(node: Node) -> bool:
    """Whether an operation of a transformed model computes on data, so that it is in low precision or has an answer.

    Dequantizations belong to the operations beside them; what only depends on constants is folded by the plugin.
    """
    if node.get_type_name() in _NO_COMPUTATION or _is_dequantization(node):
        return False
    return node.get_type_name() == "FakeQuantize" or not is_constant_path(node)


def in_low_precision(node: Node) -> bool:
    """Whether a FakeQuantize gives, and any other operation reads, integers of at most 16 bits."""
    if node.get_type_name() == "FakeQuantize":
        return precision_of(node.output(0)) in _LOW
    if node.get_type_name() in RECURRENT:  # the dequantizations stay before it, and a plugin fuses the whole
        return _comes_low(node.input_value(0)) and not _real_weights(node)
    return any(
        _precision_read(value) in _LOW for value in node.input_values() if not isinstance(value.get_node(), Constant)
    )


def _real_weights(node: Node) -> list[str]:
    """Of a recurrent layer, the weights that it reads as real numbers."""
    named = zip(("weights", "recurrent weights"), RECURRENT[node.get_type_name()], strict=True)
    return [name for name, port in named if isinstance(node.input_value(port).get_node(), Constant)]


def _comes_low(value: Output) -> bool:
    """Whether what stands before the dequantization of a value is in low precision."""
    source = value.get_node()
    while _is_dequantization(source) or source.get_type_name() == "Convert":
        value = source.input_value(0)
        source = value.get_node()
    return in_low_precision(source) or precision_of(value) in _LOW


def _after(node: Node) -> tuple[str, str]:
    """Names that stand before a dequantization which took over its producer's name."""
    return original(node.get_friendly_name()), dequantization(node.get_friendly_name(), "")


def _is_dequantization(node: Node) -> bool:
    if not node.get_input_size():  # a constant that was folded has the name of what it was folded from
        return False
    return is_dequantization(node.get_friendly_name()) or (
        node.get_type_name() in ("Multiply", "Subtract")
        and isinstance(node.input_value(1).get_node(), Constant)
        and (
            node.input_value(0).get_node().get_friendly_name().startswith(_after(node))
            or _precision_read(node.input_value(0)) in _LOW
            or precision_of(node.input_value(0)) in _LOW
        )
    )


def _precision_read(value: Output) -> str:
    """The type of the data; a zero point before it counts as part of the operation that reads it."""
    source = value.get_node()
    if source.get_type_name() == "Subtract" and precision_of(source.input_value(0)) in _LOW:
        return precision_of(source.input_value(0))
    return precision_of(value)


def _name(node: Node) -> str:
    return given(node.get_friendly_name())


class _Why(NamedTuple):
    """A reason, the operation whose condition decides, what would help, and that condition."""

    reason: Reason
    root: Node
    help: str | None = None
    root_reason: Reason | None = None  # None: the reason itself


class _Answers:
    """Reads the result and the trace of one run."""

    def __init__(self, model: Model, trace: Trace, native_only: bool, names: UserNames, is_body: bool):
        self.native_only, self.names = native_only, names
        self.begin = "the input of the body that it is in" if is_body else "the model's input"
        self.model, self.nodes = model, model.get_ordered_ops()
        self.events: dict[str, list[Event]] = {}
        for event in trace:
            if event.outcome is Outcome.TRANSFORMED or event.transformation in REWRITES:
                continue
            if not ROWS[event.reason.code].incidental:
                self.events.setdefault(event.node, []).append(event)
        self.below_quantization: set[int] = set()  # instances with a quantization above their data
        for node in self.nodes:
            for value in self._data(node):
                source = value.get_node()
                is_quantized = source.get_type_name() == "FakeQuantize" or precision_of(value) in _LOW
                if is_quantized or source.get_instance_id() in self.below_quantization:
                    self.below_quantization.add(node.get_instance_id())

    def all(self) -> list[Operation]:
        return [
            Operation(
                node.get_type_name(),
                _name(node),
                self._user(node),
                None if in_low_precision(node) else self._answer(node),
            )
            for node in self.nodes
            if is_answerable(node)
        ]

    def _user(self, node: Node) -> str:
        return self.names.of(node, _name(node))

    def _title(self, node: Node) -> str:
        return self.names.title(node, _name(node))

    def _answer(self, node: Node) -> Answer:
        chain = self._chain(node)
        why = self._why(node, chain)
        return Answer(
            operation=node.get_type_name(),
            name=self._user(node),
            reason=why.reason,
            upstream=tuple(self._title(each) for each in chain),
            help=why.help or ROWS[why.reason.code].help,
            quantizable=has_weights(node.get_type_name()) and node.get_instance_id() in self.below_quantization,
            root=self._title(why.root),
            root_reason=why.root_reason or why.reason,
            node=_name(node),
        )

    def _why(self, node: Node, chain: Sequence[Node]) -> _Why:
        own = self._own(node)
        if own is not None and own.code == "activation_precision" and (above := _computes_data_of(node)) is not None:
            return self._reads_float(node, above)
        if own is not None:
            return _Why(own, node)
        if node.get_type_name() == "FakeQuantize":
            return self._of_fake_quantize(node)
        end = chain[-1] if chain else None
        if end is not None and end.get_type_name() == "FakeQuantize" and not in_low_precision(end):
            own = self._own(end)
            why = _Why(own, end, ROWS[own.code].help) if own else self._of_fake_quantize(end, besides=node)
            text = f"the FakeQuantize {self._user(end)} above stays in float: {why.reason.text}"
            return _Why(Reason("fake_quantize_stays", text), why.root, why.help, why.root_reason or why.reason)
        if end is not None and in_low_precision(end):
            if node.get_type_name() == "Add" and (layer := _biased(node)) is not None:
                return _Why(self._bias(layer), node)
            return self._reads_float(node, end)
        if end is not None and end.get_instance_id() in self.below_quantization and (own := self._own(end)) is not None:
            text = f"the quantization above is lost at {self._title(end)}: {own.text}"
            return _Why(Reason("lost_upstream", text), end, f"put a FakeQuantize after {self._title(end)}", own)
        text = f"there is no FakeQuantize between it and {self.begin}"
        return _Why(Reason("no_fake_quantize", text), node)

    def _reads_float(self, node: Node, above: Node) -> _Why:
        text = f"it reads the float result of {self._title(above)}, and nothing quantizes it in between"
        help_ = ROWS["no_fake_quantize"].help if has_weights(node.get_type_name()) else None
        return _Why(Reason("float_result", text), node, help_)

    def _own(self, node: Node) -> Reason | None:
        """What keeps the node itself in float, whatever stands above."""
        kind, said = node.get_type_name(), self.events.get(_name(node), [])
        row = operation_of(kind, self.native_only)
        if kind not in ("FakeQuantize", *_SOURCES) and not any(
            precision_of(value) in REAL for value in self._data(node)
        ):
            types = {precision_of(value) for value in self._data(node)}
            if not types:
                return Reason("constant_data", "its data is constant, and the plugin computes it once")
            text = f"it computes on {', '.join(sorted(types))}, which are not quantized numbers"
            return Reason("dynamic_scales", _DYNAMIC) if _is_rounded(node) else Reason("not_real", text)
        if kind in _SOURCES:
            return None
        if kind == "Convert":
            text = f"it cuts real numbers to {precision_of(node.output(0))}"
            return Reason("not_real", text) if _cuts(node) else None
        if next(bodies_of(node), None) is not None:
            return Reason("body", "it only runs its body, whose operations have answers of their own")
        no_rule = row.why_no_rule(node.get_type_info().version_id) if row is not None else None
        if row is None or no_rule is not None:
            return no_rule or Reason("no_rule", f"there is no rule for {kind}")
        if kind == "FakeQuantize" and is_constant_path(node):
            return Reason("weights", "it quantizes constants, and the operation that reads them stays in float")
        said = [event for event in said if event.operation == kind and event.reason.code != "not_quantized"]
        said = [event for event in said if not self._is_of_what_is_above(node, event)]
        if not said:
            real = _real_weights(node) if kind in RECURRENT else []
            return Reason("weights_not_quantized", f"its {' and '.join(real)} are not quantized") if real else None
        decisive = [event for event in said if event.outcome is not Outcome.REJECTED] or said
        reason = decisive[-1].reason
        if reason.code == "callback" and (layer := _biased(node)) is not None:
            return self._bias(layer)
        return reason

    def _bias(self, layer: Node) -> Reason:
        return Reason("bias", f"it is the bias of {self._title(layer)}, which plugins fuse")

    @staticmethod
    def _is_of_what_is_above(node: Node, event: Event) -> bool:
        """Float results, and the second input of a MatMul without a quantization, are places to look above."""
        if ROWS[event.reason.code].of_activations and has_weights(node.get_type_name()):
            source = node.input_value(0).get_node()
            while _is_dequantization(source) or getattr(
                OPERATIONS.get(source.get_type_name()), "precision_preserved", False
            ):
                source = source.input_value(0).get_node()
            return source.get_type_name() != "FakeQuantize" and in_low_precision(source)
        if event.reason.code in ("activation_precision", "float_result"):
            return not any(_comes_low(value) for value in node.input_values())
        is_second = event.reason.code in ("weights_not_quantized", "not_decomposed")
        return is_second and node.get_type_name() == "MatMul" and not is_constant_path(node.input_value(1).get_node())

    def _of_fake_quantize(self, quantize: Node, besides: Node | None = None) -> _Why:
        """Why nothing below takes what it quantizes, and what would help."""
        for consumer in self._consumers(quantize):
            if besides is not None and consumer.get_instance_id() == besides.get_instance_id():
                continue
            if in_low_precision(consumer) and consumer.get_type_name() in ("Add", "Multiply"):
                other = f"{self._title(consumer)} reads its other input as integers"
                text = f"{other}, and this one absorbs the ratio of both scales"
                return _Why(Reason("full_branch", text), consumer)
            if (why := self._own(consumer)) is not None:
                text = f"{self._title(consumer)} below does not take low precision: {why.text}"
                return _Why(Reason("no_consumer", text), consumer, ROWS[why.code].help, why)
        if is_output(quantize.output(0)):
            return _Why(Reason("no_consumer", "its output is an output of the model, which stays in float"), quantize)
        text = (
            "no operation after it can compute in low precision, so it quantizes and dequantizes in one step, in float"
        )
        return _Why(Reason("no_consumer", text), quantize)

    @staticmethod
    def _consumers(node: Node) -> Iterator[Node]:
        """Below a node, through dequantizations and operations that move data, the nearest first."""
        pending, seen = [node], set()
        while pending:
            for target in (each for output in pending.pop(0).outputs() for each in targets_of(output)):
                consumer = target.get_node()
                if consumer.get_instance_id() in seen or consumer.get_type_name() == "Result":
                    continue
                seen.add(consumer.get_instance_id())
                row = OPERATIONS.get(consumer.get_type_name())
                if _is_dequantization(consumer) or consumer.get_type_name() == "Convert":
                    pending.append(consumer)
                    continue
                yield consumer
                if row is not None and row.precision_preserved:
                    pending.append(consumer)

    @staticmethod
    def _data(node: Node) -> list[Output]:
        """The inputs that depend on data, of those that a dequantization can stand before."""
        row = OPERATIONS.get(node.get_type_name())
        ports: Iterable[int] = range(node.get_input_size())
        if row is not None and row.kind != "absent" and row.data_inputs is not None:
            ports = row.data_inputs
        inputs = [node.input_value(port) for port in ports if port < node.get_input_size()]
        return [
            value
            for value in inputs
            if not is_constant_path(value.get_node()) or value.get_node().get_type_name() in _SOURCES
        ]

    def _chain(self, node: Node) -> list[Node]:
        """The operations above, along the data, up to where low precision ends or never began."""
        chain: list[Node] = []
        while len(chain) < 50:
            values = self._data(node)
            if not values:
                break
            real = [value for value in values if _precision_read(value) in REAL]
            node = next((value for value in real if not _comes_low(value)), values[0]).get_node()
            if _is_dequantization(node) or (node.get_type_name() == "Convert" and not _cuts(node)):
                continue
            chain.append(node)
            if node.get_type_name() in ("FakeQuantize", *_SOURCES) or in_low_precision(node) or self._loses(node):
                break
        return chain

    def _loses(self, node: Node) -> bool:
        own = self._own(node)
        return own is not None and own.code != "bias"


def _cuts(node: Node) -> bool:
    """Whether a Convert makes whole numbers of real ones, other than those that a quantization makes."""
    is_whole = node.get_type_name() == "Convert" and precision_of(node.output(0)) in ("i32", "i64", "u32", "u64")
    return is_whole and precision_of(node.input_value(0)) in REAL


def _is_rounded(node: Node) -> bool:
    """Whether integers come to an operation that a dynamic quantization made of data."""
    source = node.input_value(0).get_node()
    while source.get_type_name() in ("Convert", "Subtract") and not rounds_data(source):
        source = source.input_value(0).get_node()
    return rounds_data(source)


def _computes_data_of(node: Node) -> Node | None:
    """Of an operation with weights, what computes its data in float: a PRelu of data with a zero point, which a
    dequantization follows, is one. None where the data comes from a FakeQuantize or from outside.
    """
    if not has_weights(node.get_type_name()):
        return None
    source = node.input_value(0).get_node()
    while _is_dequantization(source) or getattr(OPERATIONS.get(source.get_type_name()), "precision_preserved", False):
        source = source.input_value(0).get_node()
    return None if source.get_type_name() in ("FakeQuantize", "Constant", *_SOURCES) else source


def _biased(node: Node) -> Node | None:
    """The operation with weights that an Add of a constant follows."""
    if not any(is_constant_path(value.get_node()) for value in node.input_values()):
        return None
    for value in node.input_values():
        source = value.get_node()
        while _is_dequantization(source):
            source = source.input_value(0).get_node()
        if has_weights(source.get_type_name()):
            return source
    return None
