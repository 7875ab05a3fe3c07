"""The pass with ``native_only`` and random restrictions against the native pass, node by node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import lt
from typing import Any

import numpy as np

from ovlpt import (
    LowPrecision,
    Params,
    PassConfig,
    PrecisionsRestriction,
    QuantizationGranularityRestriction,
)
from ovlpt.common_optimizations import fold_stored_integers
from ovlpt.device.known_sizes import known_sizes
from ovlpt.graph.bodies import all_nodes, with_bodies
from ovlpt.graph.constants import constant, converted, elementwise, is_constant_path, precision_of, values_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import RELEASE, Constant, Manager, Model, Node, Output, PartialShape
from ovlpt.precisions import FLOAT8, INT8
from ovlpt.prerequisites.convert_subtract import ConvertSubtract
from tools.fuzz import operations
from tools.fuzz.graphs import Graph, NoFloatRun, build, pruned
from tools.fuzz.numbers import STOCK, Failure
from tools.fuzz.operations import chance, pick
from tools.parity.compare import compare
from tools.parity.driver import NativePassFails, run_native

# Left out: recurrent layers that no restriction names keep their dequantized weights, where the native pass folds them;
# integers of 16 bits, which the CPU plugin takes out before its pass.
_LEFT_OUT = ("LSTM", "GRU", "LSTMCell", "GRUCell", "QuantizeDequantizeWide")
KINDS = {kind: row for kind, row in operations.KINDS.items() if kind not in _LEFT_OUT}


@dataclass(frozen=True)
class Settings:
    """What both passes are called with."""

    precisions: tuple[PrecisionsRestriction, ...]
    granularities: tuple[QuantizationGranularityRestriction, ...]
    params: Params
    disabled: tuple[str, ...]


def settings_of(seed: int) -> Settings:
    """The settings of a plugin, or random ones."""
    random = np.random.default_rng(seed)
    lists = (("u8",), ("u8",), ("i8",), ("u8", "i8"), ("i8", "u8"))
    precisions, granularities = [], []
    for operation in ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul"):
        if chance(random, 0.85):
            precisions.append(PrecisionsRestriction.create(operation, {0: pick(random, *lists), 1: ("i8",)}))
        if operation != "MatMul" and chance(random, 0.5):
            granularities.append(QuantizationGranularityRestriction.create(operation, [0]))
    for operation in ("Add", "Multiply", "MVN", "AvgPool"):
        if chance(random, 0.1):
            precisions.append(PrecisionsRestriction.create(operation, {0: pick(random, *lists)}))
    params = Params(
        update_precisions=not chance(random, 0.1),
        default_precisions=pick(random, ("u8", "i8"), ("u8", "i8"), ("i8", "u8")),
        native_only=True,
    )
    odds = {"MultiplyToGroupConvolutionTransformation": 0.7, "AddTransformation": 0.2}
    disabled = tuple(name for name, probability in odds.items() if chance(random, probability))
    return Settings(tuple(precisions), tuple(granularities), params, disabled)


def prepared(model: Model) -> Model:
    """As every plugin has it before its own pass: constants of 16 bits that only a Convert reads, and what is computed of them
    before it, in f32, differences as sums, known shapes and what is only rearranged of a constant as constants; and as
    `CommonOptimizations` has it what is computed of stored integers, such as clipped weights.
    """
    for each in with_bodies(model):
        fold_stored_integers(each)
    manager = Manager()
    manager.register_pass(ConvertSubtract())
    manager.run_passes(model)
    for node in list(all_nodes(model)):
        if node.get_type_name() in ("Reshape", "Transpose", "Unsqueeze"):
            folded = _rearranged(node)
            if folded is not None:
                replace_output(node.output(0), folded.output(0))
                continue
        if (known := _sizes(node)) is not None:
            replace_output(node.output(0), constant(known, precision_of(node.output(0))).output(0))
        source = node.input_value(0).get_node() if node.get_type_name() == "Convert" else None
        if isinstance(source, Constant) and precision_of(source.output(0)) in ("f16", "bf16"):
            replace_output(node.output(0), constant(values_of(source), precision_of(node.output(0))).output(0))
        elif (
            source is not None
            and precision_of(node.output(0)) == "f32"
            and _is_of_constants_in_f16(node.input_value(0))
        ):
            replace_output(node.output(0), _in_f32(node.input_value(0)))
        if source is not None and source.get_type_name() == "FakeQuantize" and precision_of(node.output(0)) in INT8:
            stored = folded_constant(source.output(0))  # of weights that a file has as floats and a Quantize
            if stored is not None:
                replace_output(node.output(0), constant(stored, precision_of(node.output(0))).output(0))
    return model


def _sizes(node: Node) -> np.ndarray | None:
    """What a ShapeOf gives, or a Gather picks of it, though other sizes may be open."""
    is_whole = node.get_type_name() == "ShapeOf" and node.get_input_partial_shape(0).is_static
    return np.array(node.get_input_shape(0)) if is_whole else known_sizes(node)


def _is_of_constants_in_f16(value: Output) -> bool:
    node = value.get_node()
    if precision_of(value) != "f16" or isinstance(node, Constant):
        return precision_of(value) == "f16"
    if node.get_type_name() in ("Multiply", "Subtract"):
        return all(map(_is_of_constants_in_f16, node.input_values()))
    return node.get_type_name() == "Convert" and isinstance(node.input_value(0).get_node(), Constant)


def _in_f32(value: Output) -> Output:
    node = value.get_node()
    if isinstance(node, Constant):
        return constant(values_of(node)).output(0)
    if node.get_type_name() == "Convert":
        return converted(node.input_value(0), "f32").output(0)
    return elementwise(node.get_type_name(), *map(_in_f32, node.input_values())).output(0)


def _rearranged(node: Node) -> Constant | None:
    """What a node makes of a constant, by constants."""
    if not all(isinstance(value.get_node(), Constant) for value in node.input_values()):
        return None
    stored = node.input_value(0).get_node()
    order = values_of(node.input_value(1).get_node())
    if node.get_type_name() == "Transpose":
        values = values_of(stored).transpose([int(axis) for axis in order])
    else:
        values = values_of(stored).reshape(node.get_output_shape(0))
    return constant(values, precision_of(stored.output(0)))


def ours(model: Model, settings: Settings) -> Model:
    result = model.clone()
    manager = Manager()
    manager.register_pass(
        LowPrecision(settings.precisions, settings.granularities, settings.params, PassConfig(set(settings.disabled)))
    )
    manager.run_passes(result)
    return result


def failures(graph: Graph, only: str | None = None) -> Iterator[Failure]:
    """The differences from the native result; the settings follow from the graph's seed.

    The model is `prepared` first. Where the native pass fails
    or changes the shape of an output, which is its own fault, the largest parts of the graph without that are compared.
    ``only``: `STOCK` for the plugin with the float graph alone.
    """
    if only == STOCK:
        with suppress(NoFloatRun):
            build(graph)
        return
    try:
        yield from _differences(graph)
        return
    except NoFloatRun as error:
        transformation = "".join(re.findall(r"\[(\w+)\] END", str(error))[:1])
        yield Failure(STOCK, f"the plugin cannot run the float graph: {transformation}", str(error)[-300:])
    except NativePassFails as error:
        yield Failure(STOCK, re.sub(r"[0-9]+", "#", str(error)))
    pending, seen = list(graph.results), set()
    while pending:
        value = pending.pop()
        if value in seen or graph.steps[value[0]].kind == "Parameter":
            continue
        seen.add(value)
        try:
            yield from _differences(pruned(replace(graph, results=(value,))))
        except (NoFloatRun, NativePassFails):
            pending += graph.steps[value[0]].sources


def _differences(graph: Graph) -> Iterator[Failure]:
    """Raises `NoFloatRun`, and `NativePassFails`; ours may fail then, too, but by OpenVINO's word only."""
    settings = settings_of(graph.seed)
    model = prepared(build(graph))
    try:
        expected = _native(model, settings)
    except NativePassFails:
        try:
            ours(model, settings)
        except RuntimeError:
            pass
        except Exception as error:
            yield Failure("native", "error", str(error)[-300:])
        raise
    try:
        found = ours(model, settings)
    except Exception as error:  # whatever it is, it is a finding
        yield Failure("native", "error", str(error)[-300:])
        return
    result = compare(expected, found)
    if not result.equal and all(is_level_from_above(model, difference) for difference in result.differences):
        yield Failure(STOCK, "a FakeQuantize after another takes its levels", result.differences[0])
    elif not result.equal and RELEASE < (2026, 0) and all(map(_is_shift_in_f32, result.differences)):
        yield Failure(STOCK, "a shift in f32 amid f16", result.differences[0])
    elif not result.equal:
        causes = [re.sub(r"(?<=\w) \S+(?=:)|(?<=[-\[ ,])[0-9.e]+", "", text) for text in result.differences]
        yield Failure("native", min(causes), "\n".join(["", *result.differences[:8], str(settings)]))


def _native(model: Model, settings: Settings) -> Model:
    result = run_native(model, settings.precisions, settings.granularities, settings.params, settings.disabled)
    for before, after in zip(model.outputs, result.outputs, strict=True):
        if not before.get_partial_shape().compatible(after.get_partial_shape()):
            raise NativePassFails("the native pass changes the shape of an output")
    if any(map(lt, _roundings_to_float_8(result), _roundings_to_float_8(model))):
        raise NativePassFails("the native pass drops a rounding to f8")
    if _constants_of_several_ranks(result) > _constants_of_several_ranks(model):
        raise NativePassFails("the native pass gives one constant to scales of several ranks")
    if settings.params.update_precisions and any(map(_gives_points, all_nodes(model))):
        raise NativePassFails("the native pass rounds the points that a quantization gives")
    if any(map(_is_joined_for_several, all_nodes(model))):
        raise NativePassFails(
            "the native pass moves one of several dequantizations before a Concat, and keeps it for the others"
        )
    read = _read_by_reshapes(model)
    for name, shape in _read_by_reshapes(result).items():
        if name in read and not shape.compatible(read[name]):
            raise NativePassFails("the native pass changes a shape that a Reshape reads")
    return result


def _gives_points(node: Node) -> bool:
    """Whether a FakeQuantize of data gives one value per channel, which becomes an integer of 8 bits."""
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return (
        details is not None and not is_constant_path(node) and np.array_equal(details.output_low, details.output_high)
    )


def _is_joined_for_several(node: Node) -> bool:
    """Whether it gives several dequantizations the integers of what a Concat joins."""
    if node.get_type_name() != "Convert" or precision_of(node.output(0)) not in INT8 or len(readers_of(node)) < 2:
        return False
    quantize = node.input_value(0).get_node()
    if quantize.get_type_name() != "FakeQuantize":
        return False
    source = quantize.input_value(0).get_node()
    joined = source.input_value(0).get_node() if source.get_type_name() == "Relu" else source
    return joined.get_type_name() == "Concat" and len(readers_of(joined)) == 1


def _roundings_to_float_8(model: Model) -> list[int]:
    """How many lie above each result, of bodies, too: one reader of a rounding may lose it, and others not."""
    results = (result for each in with_bodies(model) for result in each.get_results())
    return [sum(map(_rounds_to_float_8, _nodes_above(result))) for result in results]


def _rounds_to_float_8(node: Node) -> bool:
    return node.get_type_name() == "Convert" and precision_of(node.output(0)) in FLOAT8


def _constants_of_several_ranks(model: Model) -> int:
    """How many scales or zero points by channel have readers whose data differ in rank: one that a reduction takes for its
    own, and another operation reads, loses its axes for both.
    """
    return sum(
        len(_ranks_of_scaled(node)) > 1
        for node in all_nodes(model)
        if isinstance(node, Constant) and node.data.size > 1
    )


def _ranks_of_scaled(node: Node) -> set[int]:
    """The known ranks of what a constant is a scale or a zero point of."""
    ranks = (target.get_node().input_value(0).get_partial_shape().rank for target in _scaling(node))
    return {rank.get_length() for rank in ranks if rank.is_static}


def _scaling(node: Node) -> list[Any]:
    """The inputs that a constant is a scale or a zero point of."""
    targets = node.output(0).get_target_inputs()
    return [each for each in targets if each.get_node().get_type_name() in ("Multiply", "Subtract")]


def _read_by_reshapes(model: Model) -> dict[str, PartialShape]:
    """By the names of the Reshapes, which alone do not refuse to be given more elements than before."""
    reshapes = (node for node in all_nodes(model) if node.get_type_name() == "Reshape")
    return {node.get_friendly_name(): node.get_input_partial_shape(0) for node in reshapes}


def is_level_from_above(model: Model, difference: str) -> bool:
    """Whether the native FakeQuantize has the levels of another one above it, and ours those that it had.

    The native library hands the attributes of an operation that it fuses into a FakeQuantize on to it, and with them the
    levels that the FakeQuantize above is to have back. One that was moved before a Concat has a number after its name.
    """
    found = re.fullmatch(r"FakeQuantize ((\S+?)(?:_\d+)?): levels is (\d+), not (\d+)", difference)
    named = {node.get_friendly_name(): node for node in model.get_ops()}
    node = found and (named.get(found[1]) or named.get(found[2]))
    return node is not None and _levels(node) == int(found[3]) and int(found[4]) in map(_levels, _quantizes_above(node))


def _is_shift_in_f32(difference: str) -> bool:
    """Whether the native Subtract that an Add becomes is in f32 in a model in f16, as before OpenVINO 2026.0."""
    return re.fullmatch(r"(Constant|Subtract) \S+: it gives f16, not f32", difference) is not None


def _levels(quantize: Node) -> int:
    return quantize.get_attributes()["levels"]


def _quantizes_above(node: Node) -> list[Node]:
    return [each for each in _nodes_above(node) if each.get_type_name() == "FakeQuantize"]


def _nodes_above(node: Node) -> list[Node]:
    pending, found = [node], {}
    while pending:
        for value in pending.pop().input_values():
            source = value.get_node()
            if source.get_instance_id() not in found:
                found[source.get_instance_id()] = source
                pending.append(source)
    return list(found.values())
