"""A random graph as data: it can be built with and without quantization, printed, and made smaller."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from openvino._offline_transformations import compress_model_transformation

from ovlpt.openvino_api import Constant, ConvertFP32ToFP16, Manager, Model, Node, Output, PartialShape, opset1
from tools.fuzz.exported import EXPORTED
from tools.fuzz.forms import FORM_MOTIFS, FORMS
from tools.fuzz.operations import (
    ADDED,
    KINDS,
    MOTIFS,
    QUANTIZES,
    STATES,
    WEIGHTED,
    Builder,
    chance,
    f32,
    parameter,
    pick,
    sizes,
)
from tools.fuzz.rarer import RARER, RARER_MOTIFS, THIN
from tools.fuzz.stored import constants_in_bf16, pairs_in_f32, past_of, remember
from tools.fuzz.truth import simulate

Value = tuple[int, int]  # step and output of the step
_LARGEST = 6000  # elements of a value
_SHAPES = (
    (1, 8, 6, 6), (1, 4, 5, 7), (2, 6, 4, 4), (1, 16, 3, 3), (1, 3, 8, 8), (1, 7, 7, 8), (1, 2, 6, 8),
    (1, 6, 12), (2, 5, 8), (1, 8), (2, 12), (1, 4, 3, 4, 4), (1, 16, 1, 1), (1, 8, 1, 4), (1, 1, 8, 8), (1, 8, 1), (8,), (12,),
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One operation. ``shape`` is that of a Parameter, or of the first output."""

    kind: str
    sources: tuple[Value, ...]
    seed: int
    shape: tuple[int, ...]

    @property
    def quantizes(self) -> bool:
        return self.kind in QUANTIZES


@dataclass(frozen=True)
class Form:
    """How a model stores its real numbers, and which sizes it leaves open.

    ``precision``: "f32"; "f16 constants" or "bf16 constants" after a Convert each; "f16" throughout; "f16 beside pairs",
    which are in f32. ``dynamic``: "", "batch", "space" (all axes from the third on), "both", "all", the channels among
    them, or "rank".
    """

    precision: str = "f32"
    dynamic: str = ""

    @property
    def is_half(self) -> bool:
        return self.precision in ("f16", "f16 beside pairs")

    def apply(self, model: Model) -> Model:
        """The model in this form; sizes stay fixed where they have to."""
        if self.precision == "f16 constants":
            compress_model_transformation(model)
        elif self.precision == "bf16 constants":
            constants_in_bf16(model)
        elif self.is_half:
            manager = Manager()
            manager.register_pass(ConvertFP32ToFP16())
            manager.run_passes(model)
        if self.precision == "f16 beside pairs":
            pairs_in_f32(model)
            model.validate_nodes_and_infer_types()
        if self.dynamic:
            opened = model.clone()
            try:
                opened.reshape({port: self._opened(port.get_partial_shape()) for port in opened.inputs})
            except RuntimeError:
                return model
            return model if any(map(_reshapes_weights, opened.get_ops())) else opened
        return model

    def _opened(self, shape: PartialShape) -> PartialShape:
        if self.dynamic == "rank":
            return PartialShape.dynamic()
        if self.dynamic == "all":
            return PartialShape([-1] * shape.rank.get_length())
        batch, space = self.dynamic in ("batch", "both"), self.dynamic in ("space", "both")
        sizes = enumerate(shape.to_shape())
        return PartialShape([-1 if (batch and axis == 0) or (space and axis > 1) else size for axis, size in sizes])


def _reshapes_weights(node: Node) -> bool:
    """Whether OpenVINO, told that the axis a MatMul sums over is open, makes the shape of its weights one of the data's."""
    if node.get_type_name() != "Reshape" or isinstance(node.input_value(1).get_node(), Constant):
        return False
    source = node.input_value(0).get_node()
    while source.get_type_name() in ("Convert", "Multiply", "Reshape", "Subtract"):
        source = source.input_value(0).get_node()
    return isinstance(source, Constant)


@dataclass(frozen=True)
class Graph:
    """Steps in topological order, the values that are results, and the seed of whatever else a check draws."""

    steps: tuple[Step, ...]
    results: tuple[Value, ...]
    seed: int
    form: Form = Form()

    def __str__(self) -> str:
        lines = [
            f"{index}: {step.kind}({', '.join(map(_show, step.sources))}) {list(step.shape)} seed {step.seed}"
            for index, step in enumerate(self.steps)
        ]
        return "\n".join([*lines, f"results {', '.join(map(_show, self.results))}", f"{self.form}"])

    @property
    def parameters(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "Parameter"]

    @property
    def is_quantized(self) -> bool:
        return any(step.quantizes for step in self.steps)

    def inputs(self) -> list[np.ndarray]:
        real = np.float16 if self.form.is_half else np.float32
        return [_data(step).astype(real) for step in self.parameters]


def _show(value: Value) -> str:
    return f"{value[0]}" if value[1] == 0 else f"{value[0]}.{value[1]}"


def _data(step: Step) -> np.ndarray:
    random = np.random.default_rng(step.seed)
    return random.standard_normal(step.shape).astype(np.float32)


def _node(step: Step, sources: list[Output], values: np.ndarray | None = None) -> list[Output] | None:
    """The outputs of a step, None where it does not apply. Without ``values`` a FakeQuantize is not an operation."""
    if step.quantizes and values is None:
        return sources[:1]
    more = () if values is None else (values,)
    try:
        node = (KINDS | ADDED | FORMS | EXPORTED | RARER)[step.kind][0](
            np.random.default_rng(step.seed), *sources, *more
        )
    except (RuntimeError, ValueError):
        return None
    return None if node is None else list(node.outputs())


def _built(steps: Sequence[Step], values: dict[int, np.ndarray] | None) -> tuple[list[list[Output]], list]:
    outputs: list[list[Output]] = []
    parameters = []
    for index, step in enumerate(steps):
        if step.kind == "Parameter":
            parameters.append(parameter(step.shape, f"x{index}"))
            outputs.append(list(parameters[-1].outputs()))
            continue
        sources = [outputs[source][port] for source, port in step.sources]
        fitted = values.get(index) if values is not None else None
        built = _node(step, sources, fitted)
        if not step.quantizes or values is not None:
            built[0].get_node().set_friendly_name(f"{step.kind}{index}")
        outputs.append(built)
    return outputs, parameters


def _with_constant_weights(model: Model) -> Model:
    for node in model.get_ops():
        if node.get_type_name().startswith(("GRU", "LSTM", "RNN")):
            for weights in (node.input(node.get_input_size() - 3), node.input(node.get_input_size() - 2)):
                (values,) = simulate(Model([opset1.result(weights.get_source_output())], []), [])
                weights.replace_source_output(opset1.constant(values).output(0))
    return model


class NoFloatRun(RuntimeError):
    """The float graph cannot be run, so that there is nothing to fit ranges to."""


@functools.lru_cache(maxsize=1)  # a check builds a graph in several forms
def _fitted(steps: tuple[Step, ...]) -> dict[int, np.ndarray]:
    """What the data of each FakeQuantize is in a run of the float graph."""
    quantized = [index for index, step in enumerate(steps) if step.quantizes]
    if not quantized:
        return {}
    outputs, parameters = _built(steps, None)
    results = [opset1.result(outputs[index][0]) for index in quantized]
    try:
        model, inputs = Model(results, parameters), [_data(step) for step in steps if step.kind == "Parameter"]
        return dict(zip(quantized, simulate(_with_constant_weights(model), inputs), strict=True))
    except RuntimeError as error:
        raise NoFloatRun(str(error)) from error


def build(graph: Graph) -> Model:
    """The quantized model; FakeQuantize ranges come from a run of the float graph. Raises `NoFloatRun`."""
    return _model(graph, _fitted(graph.steps))


def in_float(graph: Graph) -> Model:
    """The model without the quantization of activations."""
    return _model(graph, None)


def _model(graph: Graph, values: dict[int, np.ndarray] | None, past: Mapping[int, np.ndarray] | None = None) -> Model:
    """``past``: in place of the variables, which then stay what they begin with."""
    outputs, parameters = _built(graph.steps, values)
    results, sinks = [], []
    for index, step in enumerate(graph.steps):
        if step.kind in STATES and past is None:
            sinks.append(remember(outputs[index][0].get_node(), step.kind, f"state{index}"))
        elif index in (past or ()):
            past_of(outputs[index][0].get_node()).replace_source_output(f32(past[index]).output(0))
    for number, (index, port) in enumerate(graph.results):
        outputs[index][port].get_tensor().add_names({f"y{number}"})
        results.append(opset1.result(outputs[index][port]))
    model = Model(results, sinks, parameters, "fuzz")
    model.validate_nodes_and_infer_types()
    return graph.form.apply(model)


def observed(graph: Graph) -> list[Value]:
    """The results of the graph first, and then whatever a step computes."""
    read = [source for step in graph.steps for source in step.sources]
    values = [*graph.results, *((index, 0) for index in range(len(graph.steps))), *read]
    return [value for value in dict.fromkeys(values) if graph.steps[value[0]].kind != "Parameter"]


def reference(graph: Graph, past: Mapping[int, np.ndarray] | None = None) -> Model:
    """The quantized model with fixed sizes and all that is `observed` as results.

    So the plugin executes step by step: at times it fuses scales into other kernels, which then compute them wrongly.
    The weights of recurrent layers are constants, which the plugin demands. ``past``: what states hold, by step.
    """
    fixed = replace(graph, results=tuple(observed(graph)), form=replace(graph.form, dynamic=""))
    return _with_constant_weights(_model(fixed, _fitted(graph.steps), past or {}))


def random_graph(seed: int, table: Mapping[str, tuple[Builder, int, float]] = KINDS) -> Graph:  # noqa: C901, one branch for each way in which a graph grows
    """Between 3 and 15 operations over one to three inputs; activations before layers are mostly quantized."""
    random = np.random.default_rng(seed)
    steps: list[Step] = []
    outputs: list[list[Output]] = []
    values: list[Value] = []

    def rank_of(value: Value) -> int:
        return len(outputs[value[0]][value[1]].get_shape())

    def new_seed() -> int:
        return int(random.integers(2**31))

    def append(step: Step, built: list[Output]) -> list[Value]:
        steps.append(step)
        outputs.append(built)
        added = [(len(steps) - 1, port) for port in range(len(built))]
        if step.kind in ("MaxPool", "TorchMaxPool", "AdaptivePool", "InOrder"):
            added = added[:1]
        values.extend(added)
        return added

    def add(kind: str, sources: list[Value]) -> list[Value]:
        sources = [quantized(source) if kind in WEIGHTED and chance(random, 0.85) else source for source in sources]
        if kind in ("MatMulOfTwo", "Attention"):  # without VNNI sums of two whole ranges are cut off
            sources[1] = half_range(sources[1])
        step = Step(kind, tuple(sources), new_seed(), ())
        built = _node(step, [outputs[index][port] for index, port in sources])
        if built is None or any(output.get_partial_shape().is_dynamic for output in built):
            return []
        if not all(
            sizes(output) and all(sizes(output)) for output in built
        ):  # scalars and no elements end most operations
            return []
        if max(int(np.prod(output.get_shape())) for output in built) > _LARGEST:
            return []
        return append(Step(kind, step.sources, step.seed, tuple(built[0].get_shape())), built)

    def half_range(source: Value) -> Value:
        while steps[source[0]].quantizes:
            source = steps[source[0]].sources[0]
        return add("FakeQuantizeHalf", [source])[0]

    def quantized(source: Value) -> Value:
        if steps[source[0]].quantizes:
            return source
        for index, step in enumerate(steps):
            if (
                step.kind in ("FakeQuantize", "QuantizeDequantize")
                and step.sources[0] == source
                and chance(random, 0.8)
            ):
                return (index, 0)
        kind = "QuantizeDequantize" if chance(random, in_pairs) else "FakeQuantize"
        if has_forms and in_pairs and chance(random, 0.5):
            kind = "QuantizeClip"
        return add(kind, [source])[0]

    def follow(motif: Sequence[tuple[str, tuple[int, ...]]], start: Value) -> None:
        made = [start]
        for kind, sources in motif:
            added = add(kind, [made[source] for source in sources])
            if not added:
                return
            made.append(added[0])

    has_forms, has_rarer = (not kinds.keys().isdisjoint(table) for kinds in (FORMS, RARER))
    in_pairs = pick(random, 0.0, 0.0, 0.0, 0.9)  # a graph from an ONNX file is so throughout
    shapes = _SHAPES + 2 * THIN if has_rarer else _SHAPES
    shape = pick(random, *shapes)
    for _ in range(pick(random, 1, 1, 1, 2, 2, 3)):
        step = Step("Parameter", (), new_seed(), tuple(shape))
        append(step, list(parameter(shape, "x").outputs()))
        if chance(random, 0.3):
            shape = pick(random, *shapes)
    kinds, motifs = list(table), [motif for motif in MOTIFS if all(kind in table for kind, _ in motif)]
    motifs += (FORM_MOTIFS if has_forms else ()) + (RARER_MOTIFS if has_rarer else ())
    odds = np.array([table[kind][2] for kind in kinds])
    wanted = len(steps) + int(random.integers(3, 16))
    for _ in range(300):
        if len(steps) >= wanted:
            break
        if chance(random, 0.08):
            follow(pick(random, *motifs), pick(random, *values[-3:]))
            continue
        kind = kinds[int(random.choice(len(kinds), p=odds / odds.sum()))]
        recent = values[-3:] if chance(random, 0.75) else values
        sources = [pick(random, *recent)]
        if table[kind][1] == 2:
            rank = rank_of(sources[0])
            sources.append(pick(random, *[value for value in values if rank_of(value) == rank]))
        if kind in QUANTIZES and steps[sources[0][0]].quantizes and chance(random, 0.9):
            continue
        add(kind, sources)
    read = {value for step in steps for value in step.sources}
    results = [value for value in values if value not in read or chance(random, 0.05)]
    results = [value for value in results if steps[value[0]].kind != "Parameter"]
    form = Form(
        pick(random, "f32", "f32", "f32", "f16 constants", "f16"), pick(random, "", "", "batch", "space", "both")
    )
    if has_forms and chance(random, 0.3):
        form = replace(form, dynamic=pick(random, "all", "rank"))
    if has_forms and chance(random, 0.2):
        form = replace(form, precision=pick(random, "f16 beside pairs", "bf16 constants"))
    return pruned(Graph(tuple(steps), tuple(results), seed, form))


def pruned(graph: Graph) -> Graph:
    """Without the steps that no result needs."""
    needed = {index for index, _ in graph.results}
    for index in range(len(graph.steps) - 1, -1, -1):
        if index in needed:
            needed.update(source for source, _ in graph.steps[index].sources)
    kept = [index for index in range(len(graph.steps)) if index in needed]
    place = {index: number for number, index in enumerate(kept)}
    steps = [
        Step(step.kind, tuple((place[index], port) for index, port in step.sources), step.seed, step.shape)
        for step in (graph.steps[index] for index in kept)
    ]
    results = tuple((place[index], port) for index, port in graph.results)
    return replace(graph, steps=tuple(steps), results=results)
