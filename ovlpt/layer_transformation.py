"""What every transformation shares: visiting, refusing, moving a dequantization, names and trace."""

from __future__ import annotations

import copy
import functools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, ClassVar, TypeVar

import numpy as np

from ovlpt.attributes import AttributeTable, PrecisionPreserved, Precisions, Restricted, current_attributes
from ovlpt.config import Params, PassConfig, pass_name
from ovlpt.graph.bodies import kinds_of
from ovlpt.graph.constants import precision_of
from ovlpt.graph.consumers import consumers_of, is_output, targets_of
from ovlpt.graph.dequantization import (
    Dequantization,
    dequantization_above,
    put_constant_second,
    settles_open_size,
    write_dequantization,
)
from ovlpt.graph.names import original
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import can_be_relaxed, relaxed_like
from ovlpt.graph.replaced import detach, is_replaced, sources_of
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import Weights, read_weights
from ovlpt.openvino_api import (
    AnyInput,
    Constant,
    Manager,
    Matcher,
    MatcherPass,
    Model,
    ModelPass,
    Node,
    Output,
    WrapType,
    opset1,
)
from ovlpt.operations import Move, NodeFacts, Operation, operation_of
from ovlpt.operations.families import AFFINE
from ovlpt.precisions import NUMPY, REAL
from ovlpt.trace import Outcome, Reason, Rejected, Trace, reject, reject_unless

T = TypeVar("T")


class _Configured:
    """The settings that all passes take, by the same names."""

    def _configure(
        self,
        params: Params | None,
        pass_config: PassConfig | None,
        trace: Trace | None,
        attributes: AttributeTable | None,
    ) -> None:
        self.params = params or Params()
        self.pass_config = pass_config or PassConfig()
        self.trace = trace if trace is not None else Trace()
        self.attributes = attributes if attributes is not None else current_attributes.get()
        self.error: Exception | None = None

    def settings(self) -> dict[str, Any]:
        """Keyword arguments that give another pass the same settings."""
        return {
            "params": self.params,
            "pass_config": self.pass_config,
            "trace": self.trace,
            "attributes": self.attributes,
        }

    def row(self, kind: str) -> Operation | None:
        """The row of a type name, as these settings have it."""
        return operation_of(kind, self.params.native_only)

    def _leave_alone(self, node: Node, kind: type | str | None = None) -> bool:
        """What the callback of the pass (or of ``kind``, which it belongs to) says of the node."""
        kind = pass_name(kind or type(self))
        if (callback := self.pass_config.callbacks.get(kind)) is None:
            return False
        token = current_attributes.set(self.attributes)
        try:
            leave = callback(node)
        finally:
            current_attributes.reset(token)
        if not leave:
            return False
        reason = leave if isinstance(leave, Reason) else Reason("callback", f"the callback of {kind} leaves it alone")
        self._record(Outcome.DISABLED, node, reason)
        return True

    def _record(self, outcome: Outcome, node: Node, reason: Reason | None = None) -> None:
        self.trace.add(outcome, type(self).__name__, node.get_type_name(), node.get_friendly_name(), reason)


class ModelTransformation(ModelPass, _Configured):
    """A pass over the whole model."""

    def __init__(
        self,
        params: Params | None = None,
        *,
        pass_config: PassConfig | None = None,
        trace: Trace | None = None,
        attributes: AttributeTable | None = None,
    ):
        super().__init__()
        self._configure(params, pass_config, trace, attributes)


@functools.cache
def _pattern(*type_names: str) -> WrapType | AnyInput:
    """Of operations, made once: OpenVINO never frees a pattern that Python has made. What is found lies in the Matcher.

    `WrapType` knows the operations of opsets only. One of the caller's own, in Python or C++, is asked for by its name.
    """
    if all(map(_is_of_opset, type_names)):
        return WrapType(list(type_names))
    return AnyInput(lambda value: _type_name(value.get_node()) in type_names)


@functools.cache
def _without_versions(*type_names: str) -> frozenset[str]:
    return frozenset(name.partition(".")[2] for name in type_names)


def _type_name(node: Node) -> str:
    """As `Operation.type_names` has it: "opset1.MaxPool"."""
    return f"{node.get_type_info().version_id}.{node.get_type_name()}"


def read_once(method: Callable[..., T]) -> Callable[..., T]:
    """A method of a `LayerTransformation` that only reads: asked again during a visit, it gives what it gave before.

    So `transform` has to read before it builds.
    """

    @functools.wraps(method)
    def reading(self: LayerTransformation, node: Node, *arguments: object) -> T:
        if self._read is None:
            return method(self, node, *arguments)
        key = method.__name__, node.get_instance_id(), *arguments
        if key not in self._read:
            self._read[key] = method(self, node, *arguments)
        return self._read[key]

    return reading


class LayerTransformation(MatcherPass, _Configured):
    """One operation's rewrite. Subclasses name the row, say what must hold, and build.

    `can_be_transformed` only reads the graph and raises `Rejected`; `transform` only builds. They share no state through
    ``self`` except what both of them read.
    """

    operation: ClassVar[Operation]
    part_of: ClassVar[str | None] = None  # a pass of several, whose name in settings stands for it, too
    quiet: ClassVar[bool] = False  # refusals say nothing worth recording
    reversible: ClassVar[bool] = False  # what it replaces may come back, and has to keep its inputs
    why: ClassVar[Reason | None] = None  # what is recorded of a node that was transformed
    has_changed: bool = False  # a graph
    _read: dict[tuple[object, ...], Any] | None = None  # during a visit: what was read
    _shown_by: Callable[[], MatcherPass] | None = (
        None  # gives the pass that shows it nodes, if it does not look for them itself
    )

    def __init__(
        self,
        params: Params | None = None,
        *,
        pass_config: PassConfig | None = None,
        trace: Trace | None = None,
        attributes: AttributeTable | None = None,
    ):
        super().__init__()
        self._configure(params, pass_config, trace, attributes)
        self._names = (type(self).__name__, *([self.part_of] if self.part_of else []))  # in settings
        self._meets_open_sizes = self.is_shown(AFFINE) and not self.params.native_only
        # The C++ side keeps the callback, the callback would keep the pass, and the pass keeps the C++ side.
        held = weakref.ref(self)
        self.register_matcher(
            Matcher(_pattern(*self.type_names()), type(self).__name__),
            lambda matcher: held()._matched(matcher.get_match_root()),
        )

    @classmethod
    def type_names(cls) -> list[str]:
        """The operations that the pass is shown."""
        return cls.operation.type_names

    @classmethod
    def is_shown(cls, kinds: Set[str]) -> bool:
        """Whether it is shown operations of any of these types, whatever their versions."""
        return not _without_versions(*cls.type_names()).isdisjoint(kinds)

    def register_new_node(self, node: Node) -> Node:
        """Let a node be visited next."""
        return MatcherPass.register_new_node(self._shown_by() if self._shown_by else self, node)

    def _matched(self, node: Node) -> bool:
        return not is_replaced(node) and self.visit(node)

    def visit(self, node: Node) -> bool:
        """Handle one matched node, which has not been replaced; True when the graph was changed."""
        try:
            self._read = {}
            changed = self._visit(node)
        except Exception as error:
            self.error = error  # C++ turns it into a RuntimeError without its cause
            raise
        finally:
            self._read = None
        self.has_changed |= changed
        return changed

    def _visit(self, node: Node) -> bool:
        if not self.concerns(node) or self._is_off(node):
            return False
        if not self.params.native_only and self.attributes.get(node, Restricted) is not None:
            text = f"a restriction says that {node.get_type_name()} is not to be quantized"
            self._record(Outcome.RESTRICTED, node, Reason("restriction", text))
            return False
        if not self.has_form(node):
            return False
        try:
            if self._meets_open_sizes:
                self._check_open_sizes(node)
            self.can_be_transformed(node)
            name = node.get_friendly_name()  # a transformation may rename the node
            read = [node, *sources_of(node)]
            self.transform(node)
            if not self.reversible:
                detach(*read)
        except Rejected as refusal:
            if not self.quiet:
                self._record(Outcome.REJECTED, node, refusal.reason)
            return self.rejected(node)
        self.trace.add(Outcome.TRANSFORMED, type(self).__name__, node.get_type_name(), name, self.why)
        return True

    def concerns(self, node: Node) -> bool:
        """Whether the pass has anything to do with the node, or to say about it."""
        return True

    def has_form(self, node: Node) -> bool:
        """Whether a quiet pass may find what it looks for; else it says nothing, and needs no exception for that."""
        return True

    def _is_off(self, node: Node) -> bool:
        """Whether the settings switch the pass off, here or everywhere."""
        disabled, callbacks = self.pass_config.disabled, self.pass_config.callbacks
        for name in self._names:
            if name in disabled:
                if not self.quiet:
                    self._record(Outcome.DISABLED, node, Reason("disabled", f"{name} is switched off"))
                return True
        for name in self._names:  # noqa: SIM110, a generator would be made for every node that each pass is shown
            if name in callbacks and self._leave_alone(node, name):
                return True
        return False

    @staticmethod
    def _check_open_sizes(node: Node) -> None:
        if node.get_type_name() in AFFINE and settles_open_size(node):
            reject("dynamic_shape", "the data may be broadcast to its constant: a size is dynamic")

    def can_be_transformed(self, node: Node) -> None:
        """Raise `Rejected` where a condition does not hold; without conditions there is nothing to refuse."""

    def transform(self, node: Node) -> None:
        """Rewrite the node."""
        raise NotImplementedError

    def rejected(self, node: Node) -> bool:
        """What to do with a refused node; True when the graph was changed."""
        return False

    # Reading

    def read_anew(self) -> None:
        """Forget what was read during this visit: the graph has changed."""
        if self._read is not None:
            self._read.clear()

    @read_once
    def dequantization(self, node: Node, port: int = 0) -> Dequantization:
        return dequantization_above(node, port, self.params.default_precisions, self.params.native_only)

    @read_once
    def weights(self, node: Node) -> Weights:
        """The quantized weights on input 1, constants with a FakeQuantize or integers with a dequantization; refused if they
        cannot be used.
        """
        required = self.attributes.get(node.input(1), Precisions)
        default = self.params.default_precisions
        return read_weights(node, self.operation.weights_axes, required.value if required else default, default)

    @read_once
    def details(self, fake_quantize: Node) -> QuantizationDetails | None:
        return QuantizationDetails.of(fake_quantize)

    def require_dequantization(self, node: Node, port: int = 0) -> Dequantization:
        found = self.dequantization(node, port)
        reject_unless(
            not found.empty, "not_quantized", f"input {port} is {found.data_precision} and has no dequantization"
        )
        quantized = found.multiply is not None or found.convert is not None or found.data_precision not in REAL
        reject_unless(quantized, "not_quantized", f"input {port} is a difference of real numbers, not a dequantization")
        return found

    def is_precision_preserved(self, node: Node) -> bool:
        attribute = self.attributes.get(node, PrecisionPreserved)
        return attribute is not None and attribute.value

    def check_row(self, node: Node, found: Dequantization) -> None:
        """The row's conditions."""
        reason = self.operation.check(self.facts(node, found))
        if reason is not None:
            raise Rejected(reason)

    def facts(self, node: Node, found: Dequantization) -> NodeFacts:
        strict = self.params.reshape_ignore_per_tensor_quantization_check
        return facts_of(node, found, strict, self.params.native_only)

    # Building

    def consumers_of(self, output: Output) -> list:
        """What is to read the dequantized value: in the native library what only asks for its shape, too."""
        return targets_of(output) if self.params.native_only else consumers_of(output)

    def move_dequantization_after(
        self,
        node: Node,
        found: Dequantization,
        scale: np.ndarray | None,
        zero_point: np.ndarray | None = None,
        keeps_precision: bool = True,
    ) -> Node:
        """Let ``node`` read the raw data and put the dequantization with new constants after it.

        ``keeps_precision``: the output has the data's element type; otherwise the node is relaxed and reports the
        dequantization's. Returns the node that has replaced ``node``.
        """
        if self.params.native_only:
            put_constant_second(found)
        output_precision = precision_of(node.output(0))
        targets = self.consumers_of(node.output(0))
        if keeps_precision or found.data_precision == found.precision:
            node.input(0).replace_source_output(found.data)
            node.validate_and_infer_types()
            moved = node
        elif not can_be_relaxed(node, found.precision, self.params.deq_precision):
            node.input(0).replace_source_output(opset1.convert(found.data, found.precision).output(0))
            moved = node
        else:
            inputs = [found.data, *node.input_values()[1:]]
            moved = relaxed_like(node, inputs, found.precision, origin=self.params.deq_precision)
            self.attributes.move(node, moved)
            replace_output(node.output(0), moved.output(0))
        self.dequantize(moved.output(0), moved.get_friendly_name(), targets, found, scale, zero_point, output_precision)
        return moved

    def dequantize(
        self,
        data: Output,
        name: str,
        targets: Iterable[object],
        found: Dequantization,
        scale: np.ndarray | None,
        zero_point: np.ndarray | None,
        output_precision: str,
    ) -> None:
        """Write a dequantization after ``data`` and let ``targets`` read it (operations on shapes keep the raw
        data).
        """
        output, nodes = write_dequantization(
            data,
            name,
            scale,
            zero_point,
            precision=found.precision,
            output_precision=output_precision,
            zero_point_precision=found.zero_point_precision,
            converts=self.converts(found),
        )
        insert_after(data, output, targets, nodes)

    def converts(self, found: Dequantization) -> bool:
        """Whether a dequantization that is written converts data of another type to its own."""
        return True


class InTurn(MatcherPass):
    """Shows each node to several passes in turn, until one has changed it, as a GraphRewrite of them does.

    OpenVINO calls Python once for a node, and not for each of the passes that look for its type.
    """

    def __init__(self, passes: Iterable[LayerTransformation]):
        super().__init__()
        self._passes: dict[str, list[LayerTransformation]] = defaultdict(list)  # by type
        held: Callable[[], Any] = weakref.ref(self)
        names: set[str] = set()
        for step in passes:
            step._shown_by = held
            for kind in _versions(step):
                self._passes[kind].append(step)
            names.update(step.type_names())
        # OpenVINO shows a type-relaxed node twice in a row: by its type, and by the one that this derives from
        self._left: int | None = None
        self.register_matcher(
            Matcher(_pattern(*sorted(names)), type(self).__name__),
            lambda matcher: held().visit(matcher.get_match_root()),
        )

    @classmethod
    def of(cls, passes: Sequence[LayerTransformation]) -> Sequence[MatcherPass]:
        """One for all of the passes; themselves where they look for different versions of an operation."""
        found: dict[str, set[str]] = {}
        for step in passes:
            for kind, versions in _versions(step).items():
                if found.setdefault(kind, versions) != versions or not all(map(_is_of_opset, versions)):
                    return passes
        return [cls(passes)] if passes else []

    def visit(self, node: Node) -> bool:
        """True when the graph was changed."""
        if (number := node.get_instance_id()) == self._left or is_replaced(node):
            return False
        for step in self._passes[node.get_type_name()]:
            if step.visit(node):
                return True
        self._left = number
        return False


def _versions(step: LayerTransformation) -> dict[str, set[str]]:
    """Of the operations that a pass is shown."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in step.type_names():
        version, _, kind = name.partition(".")
        found[kind].add(version)
    return found


def _is_of_opset(version: str) -> bool:
    """Else it is the caller's own."""
    return version.startswith("opset")


class MoveDequantizationAfter(LayerTransformation):
    """Rows whose dequantization passes: ``op((x - z) * s) == (op(x) - move(z)) * move(s)``."""

    def can_be_transformed(self, node: Node) -> None:
        self.check_row(node, self.require_dequantization(node))

    def transform(self, node: Node) -> None:
        found = self.dequantization(node)
        facts = self.facts(node, found)
        move = self.operation.move
        scale = self.stored(_moved(found.scale, move, facts), node)
        zero_point = self.stored(_moved(found.zero_point, self.operation.move_zero_point or move, facts), node)
        self.move_dequantization_after(node, found, scale, zero_point, self.keeps_precision(node))

    def stored(self, values: np.ndarray | None, node: Node) -> np.ndarray | None:
        """What is written of a constant that was moved: all of it."""
        return values

    def keeps_precision(self, node: Node) -> bool:
        """Whether the output has the element type of the raw data."""
        return self.operation.preserves_precision(node.get_attributes())


def replacing(*kinds: type[T]) -> dict[type[T], type[T]]:
    """Classes by what each stands for: the class of its own name that it derives from."""
    return {next(base for base in kind.__mro__[1:] if base.__name__ == kind.__name__): kind for kind in kinds}


@functools.cache
def class_of(row: Operation) -> type[MoveDequantizationAfter]:
    """The transformation of a row that needs no code of its own."""
    return type(f"{row.name}Transformation", (MoveDequantizationAfter,), {"operation": row, "__module__": __name__})


def _moved(values: np.ndarray | None, move: Move, facts: NodeFacts) -> np.ndarray | None:
    """One value never has more axes than the output: it would add them."""
    if values is None:
        return None
    moved = move(values, facts)
    rank = moved.ndim if facts.output_shape is None else len(facts.output_shape)
    return moved.reshape(()) if moved.size == 1 and moved.ndim > rank else moved


class _FactsOfNode(NodeFacts):
    """Those of a node as it is while they are asked for: most checks ask for few of them."""

    node: Node
    found: Dequantization

    def __init__(self, node: Node, found: Dequantization, strict: bool, rows_fit: bool):
        scale = found.scale if found.scale is not None else _ONE
        self.__dict__.update(node=node, found=found, strict=strict, rows_fit=rows_fit, scale=scale)
        self.__dict__["zero_point"] = found.zero_point

    def but(self, **changes: Any) -> NodeFacts:
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    @functools.cached_property
    def shape(self):
        return shape_of(self.found.data)

    @functools.cached_property
    def output_shape(self):
        return shape_of(self.node.output(0))

    @functools.cached_property
    def attributes(self):
        return self.node.get_attributes()

    @functools.cached_property
    def constants(self):
        return (None, *map(constant_input, self.node.input_values()[1:]))

    @functools.cached_property
    def channel_axis(self):
        return self.found.channel_axis

    @functools.cached_property
    def only_consumer(self):
        consumers = self.node.output(0).get_target_inputs()
        return next(iter(consumers)).get_node().get_type_name() if len(consumers) == 1 else None

    @functools.cached_property
    def is_low(self):
        return self.found.is_low_precision


_ONE = np.ones((), np.float32)


def facts_of(node: Node, found: Dequantization, strict: bool = False, rows_fit: bool = False) -> NodeFacts:
    """What the table may know of a node."""
    return _FactsOfNode(node, found, strict, rows_fit)


def constant_input(output: Output) -> np.ndarray | None:
    """The values of a constant input of a type that numpy has (axes, sizes, slopes …), else None."""
    node = output.get_node()
    return node.data if isinstance(node, Constant) and precision_of(output) in NUMPY else None


def run_in_turn(model: Model, kinds: Iterable[type[LayerTransformation]], **settings) -> None:
    """In place: each pass over the whole model, before the next begins. ``settings``: of each.

    To run one takes a traversal: those that no operation of the model would be shown to are left out.
    """
    present = kinds_of(model)
    for kind in kinds:
        if not kind.is_shown(present):
            continue
        step, manager = kind(**settings), Manager()
        manager.register_pass(step)
        manager.run_passes(model)
        if step.has_changed:
            present = kinds_of(model)


def replace_output(old: Output, new: Output) -> None:
    """Let all consumers of ``old`` read ``new``, which takes over the tensor names."""
    for target in old.get_target_inputs():
        target.replace_source_output(new)
    move_tensor_names(old, new)


def joins_interface(source: Output, value: Output) -> bool:
    """Whether ``value`` is an output of the model, and replacing it by ``source`` would join its names with those of another or of an input."""
    return is_output(value) and (source.get_node().get_type_name() == "Parameter" or is_output(source))


def move_tensor_names(old: Output, new: Output) -> None:
    if names := old.get_names():
        old.get_tensor().set_names(set())
        new.get_tensor().add_names(names)


def insert_after(data: Output, dequantized: Output, targets: Iterable[Any], nodes: list[Node]) -> None:
    """Let ``targets`` read ``dequantized`` instead of ``data``.

    Where one of them is a Result, the last new node takes the name of the producer, so that outputs keep theirs.
    """
    reaches_result = False
    for target in targets:
        target.replace_source_output(dequantized)
        reaches_result |= target.get_node().get_type_name() == "Result"
    move_tensor_names(data, dequantized)
    if reaches_result and nodes:
        producer = data.get_node()
        name = producer.get_friendly_name()
        if original(name) != name:
            producer.set_friendly_name(original(name))
            nodes[-1].set_friendly_name(name)
