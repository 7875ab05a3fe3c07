"""The numbers of the native library's own result, without a plugin's kernels."""

from __future__ import annotations

from dataclasses import replace

from ovlpt import Params, PrecisionsRestriction, plugin_config
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import precision_of, same_operation
from ovlpt.graph.recurrent import fold_parted_weights
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.precisions import INT8, REAL
from ovlpt.qdq_stripping import QDQStripping
from tools.parity.driver import core, run_native_with


def native_result(model: Model, without: str = "") -> Model | None:
    """What the native library makes of ``model`` where `ovlpt.transform` calls its own pass, in real numbers. ``without``: a
    transformation that does not run.

    None where the CPU's settings differ between nodes of an operation, which its program cannot be given. Raises
    `NativePassFails`, `NoCompiler`.
    """
    prepared, manager = model.clone(), Manager()
    manager.register_pass(QDQStripping(plugin_config.dropped_levels("CPU"), params=Params(native_only=True)))
    fold_parted_weights(prepared)
    manager.register_pass(CommonOptimizations(plugin_config.kernels("CPU")))
    manager.run_passes(prepared)
    config = plugin_config.for_device(core(), "CPU")
    found = [_of_all(each, prepared) for each in config.precision_restrictions]
    plain = tuple(each for each in found if each is not None)
    if len(plain) < len(found):
        return None
    disabled = [*config.disabled, without] if without else config.disabled
    settings = replace(config, precision_restrictions=plain, callbacks={}, disabled=disabled)
    return in_reals(run_native_with(settings, prepared))


def _of_all(restriction: PrecisionsRestriction, model: Model) -> PrecisionsRestriction | None:
    """The same with what it says of all nodes of its operation; None where it says different things of them."""
    nodes = (node for node in all_nodes(model) if node.get_type_name() == restriction.operation)
    said = {restriction.of(node) for node in nodes} if callable(restriction.by_ports) else {restriction.by_ports}
    return replace(restriction, by_ports=next(iter(said), ())) if len(said) < 2 else None


def in_reals(model: Model) -> Model:
    """Each type-relaxed operation as a plain one that reads what it gives, or f32."""
    for node in model.get_ordered_ops():
        if not is_relaxed(node):
            continue
        given = precision_of(node.output(0))
        real = given if given in REAL else "f32"
        inputs = [
            opset1.convert(value, real).output(0) if precision_of(value) in REAL.union(INT8) - {real} else value
            for value in node.input_values()
        ]
        plain = same_operation(node, inputs)
        plain.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), plain.output(0))
    model.validate_nodes_and_infer_types()
    return model
