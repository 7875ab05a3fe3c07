"""Answers that follow the layers that were executed."""

from __future__ import annotations

from dataclasses import replace

from ovlpt.device.layer_types import MULTIPLYING_LAYERS
from ovlpt.inspect.executed import Layers, has_weights, without_kernel
from ovlpt.inspect.explain.answers import Answer, Explanation, Operation
from ovlpt.precisions import REAL
from ovlpt.trace import Reason

NO_LAYER = Reason(
    "no_layer",
    "it could read integers, but no executed layer is known to contain it, so it may or may not be in int8",
)


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
        return replace(operation, answer=_answered(operation, NO_LAYER)) if weighted and answer is None else operation
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
