"""Inferences of models with variables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ovlpt.openvino_api import Model, Tensor
from ovlpt.trace import InputError


def refuse_variables(model: Model, what: str) -> None:
    """Raises `InputError` for a model that has variables; ``what``: why that cannot be."""
    if model.get_variables():
        raise InputError(
            f'the model "{model.get_friendly_name()}" has variables, and {what}; "ovlpt check" compares its numbers over a '
            "sequence"
        )


def anew(request: Any, inputs: Any = None) -> Callable[[], object]:
    """An inference whose variables are as at first each time it is called; without ``inputs``, on those that the request has."""
    if inputs is not None:
        _own_memory(request)
    infer = partial(request.infer, inputs) if inputs is not None else partial(_started, request)
    if not request.query_state():
        return infer

    def run() -> None:
        request.reset_state()
        infer()

    return run


def _own_memory(request: Any) -> None:
    """With inputs of dynamic sizes, a new request has those of the last inference of its model, which may be arrays of the
    caller: its own inputs would be copied into them.
    """
    for port in request.model_inputs:
        if (shape := port.get_partial_shape()).is_dynamic:
            request.set_tensor(port, Tensor(port.get_element_type(), [size.get_min_length() for size in shape]))


def _started(request: Any) -> None:
    request.start_async()
    request.wait()
