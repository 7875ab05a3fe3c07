"""What the transformed graph and the trace say: which operations are in low precision, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ovlpt.device.loading import rounds_data
from ovlpt.graph.bodies import bodies_of
from ovlpt.graph.constants import is_constant_above, is_constant_path, precision_of
from ovlpt.graph.consumers import is_output, targets_of
from ovlpt.graph.names import dequantization, given, is_dequantization, original
from ovlpt.inspect.executed import has_weights
from ovlpt.inspect.explain.answers import Answer, Operation
from ovlpt.inspect.user_names import UserNames
from ovlpt.low_precision import REWRITES
from ovlpt.openvino_api import Constant, Model, Node, Output
from ovlpt.operations import OPERATIONS, RECURRENT, operation_of
from ovlpt.precisions import INT4, INT8, INT16, REAL
from ovlpt.reasons import ROWS
from ovlpt.trace import Event, Outcome, Reason, Trace

if TYPE_CHECKING:
    pass

_NO_COMPUTATION = frozenset(("Constant", "Parameter", "Result", "Convert", "ShapeOf", "Assign", "ReadValue"))
_SOURCES = frozenset(("Parameter", "ReadValue"))
_LOW = frozenset((*INT8, *INT16, *INT4))
_DYNAMIC = "its data is quantized dynamically, with scales that each inference computes"


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
    return (
        is_dequantization(node.get_friendly_name())
        or _restores_stored_integers(node)
        or (
            node.get_type_name() in ("Multiply", "Subtract")
            and isinstance(node.input_value(1).get_node(), Constant)
            and (
                node.input_value(0).get_node().get_friendly_name().startswith(_after(node))
                or _precision_read(node.input_value(0)) in _LOW
                or precision_of(node.input_value(0)) in _LOW
            )
        )
    )


def _restores_stored_integers(node: Node) -> bool:
    """Whether it subtracts a zero point from, or scales, what a Convert makes real: rows of an embedding, which a model that
    passes unchanged still has with a zero point that is converted as well.
    """
    if node.get_type_name() not in ("Multiply", "Subtract") or not is_constant_above(node.input_value(1)):
        return False
    source = node.input_value(0).get_node()
    if source.get_type_name() == "Convert":
        return precision_of(source.input_value(0)) in _LOW
    return source.get_type_name() == "Subtract" and _restores_stored_integers(source)


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


class GraphAnswers:
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
