"""The numbers of the native library's own result, without a plugin's kernels."""

from __future__ import annotations

from dataclasses import replace

from ovlpt import Params, PrecisionsRestriction, plugin_config
from ovlpt.canonicalize.native import BooleanMasks
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.device import PluginLowering
from ovlpt.graph.bodies import all_nodes, with_bodies
from ovlpt.graph.constants import precision_of, same_operation
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import fold_parted_weights
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Manager, Model, Node, opset1, opset6
from ovlpt.precisions import FLOAT8, INT8, REAL
from ovlpt.qdq_stripping import QDQStripping
from tools.parity.driver import core, run_native_with


def native_result(model: Model, without: str = "") -> Model | None:
    """What the native library makes of ``model`` where `ovlpt.transform` calls its own pass, in real numbers. ``without``: a
    transformation that does not run. None as of `_result`.
    """
    result = _result(model, without)
    return None if result is None else in_reals(result)


def lowered_native_result(model: Model) -> Model | None:
    """The same as it is, in the form in which the plugin takes what `ovlpt.transform` makes."""
    result = _result(model)
    if result is not None:
        manager = Manager()
        manager.register_pass(PluginLowering("CPU"))
        manager.run_passes(result)
    return result


def computes_in_float8_natively(model: Model) -> bool:
    """Whether an operation of its result reads f8 and gives real numbers, as a scale that has lost its Convert."""
    result = _result(model)
    relaxed = [] if result is None else [node for node in all_nodes(result) if is_relaxed(node)]
    return any(precision_of(value) in FLOAT8 for node in relaxed for value in node.input_values())


def _result(model: Model, without: str = "") -> Model | None:
    """None where the CPU's settings differ between nodes of an operation, which its program cannot be given. Raises
    `NativePassFails`, `NoCompiler`.
    """
    prepared, manager = model.clone(), Manager()
    manager.register_pass(QDQStripping(plugin_config.dropped_levels("CPU"), params=Params(native_only=True)))
    fold_parted_weights(prepared)
    manager.register_pass(BooleanMasks())
    manager.register_pass(CommonOptimizations(plugin_config.kernels("CPU"), as_defined=False))
    manager.run_passes(prepared)
    config = plugin_config.for_device(core(), "CPU")
    found = [_of_all(each, prepared) for each in config.precision_restrictions]
    plain = tuple(each for each in found if each is not None)
    if len(plain) < len(found):
        return None
    disabled = [*config.disabled, without] if without else config.disabled
    settings = replace(config, precision_restrictions=plain, callbacks={}, disabled=disabled)
    return run_native_with(settings, prepared)


def _of_all(restriction: PrecisionsRestriction, model: Model) -> PrecisionsRestriction | None:
    """The same with what it says of all nodes of its operation; None where it says different things of them."""
    nodes = (node for node in all_nodes(model) if node.get_type_name() == restriction.operation)
    said = {restriction.of(node) for node in nodes} if callable(restriction.by_ports) else {restriction.by_ports}
    return replace(restriction, by_ports=next(iter(said), ())) if len(said) < 2 else None


def in_reals(model: Model) -> Model:
    """Each type-relaxed operation as a plain one that reads what it gives, or f32. What is stored as integers is rounded: of 255
    levels over 256 integers, most are none.
    """
    for body in with_bodies(model):
        for node in body.get_ordered_ops():
            if is_relaxed(node):
                _in_reals(node)
            else:
                _read_reals(node)
        body.validate_nodes_and_infer_types()
    return model


def _in_reals(node: Node) -> None:
    given = precision_of(node.output(0))
    real = given if given in REAL else "f32"
    inputs = [
        opset1.convert(value, real).output(0) if precision_of(value) in REAL.union(INT8) - {real} else value
        for value in node.input_values()
    ]
    plain = same_operation(node, inputs)
    if given in INT8 and _gives_fractions(node):
        plain = opset6.round(plain, "half_to_even")
    plain.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), plain.output(0))


def _gives_fractions(node: Node) -> bool:
    details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
    return details is not None and bool((details.output_high - details.output_low != details.levels - 1).any())


def _read_reals(node: Node) -> None:
    """Integers beside what are real numbers now, such as the value of a Pad, become real numbers, too."""
    kinds = [precision_of(value) for value in node.input_values()]
    real = next((kind for kind in kinds if kind in REAL), None)
    for port, kind in enumerate(kinds):
        if real is not None and kind in INT8:
            node.input(port).replace_source_output(opset1.convert(node.input_value(port), real).output(0))
