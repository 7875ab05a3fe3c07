"""Variables and Parameters that hold one value for good become Constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.fusions.evaluation import EVALUATED, evaluate
from ovlpt.graph.constants import constant, precision_of
from ovlpt.layer_transformation import ModelTransformation, replace_output
from ovlpt.openvino_api import Constant, Model, Node, as_model, opset1
from ovlpt.trace import InputError, Outcome, Rejected, Trace, reject_unless

_READERS = EVALUATED | {"Assign", "BatchNormInference", "If"}


class FreezeVariables(ModelTransformation):
    """A ReadValue that nothing changes is its initial value; a Parameter has the value that the caller
    supplies.

    A variable is frozen when its initial value is constant or in ``values``, every Assign to it writes what a ReadValue
    of it read, and its readers compute on parameters or normalize (a state that is set from outside the model is
    given up with it). A Parameter in ``values`` is found by friendly or tensor name, a variable by its id, and a Parameter is no
    longer an input afterwards.

    Raises `InputError` for a name that is neither and a value whose shape does not fit it.
    """

    def __init__(self, values: Mapping[str, ArrayLike] | None = None, *, trace: Trace | None = None):
        super().__init__(trace=trace)
        self.values = dict(values or {})

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        values = {name: np.asarray(value) for name, value in self.values.items()}
        variables = [
            (variable, values.pop(variable.get_info().variable_id, None)) for variable in model.get_variables()
        ]
        supplied = [(_parameter(model, name), value) for name, value in values.items()]
        for parameter, value in supplied:
            _check_fits(parameter.get_friendly_name(), parameter, value)
        for parameter, value in supplied:
            replace_output(parameter.output(0), _frozen(value, parameter).output(0))
            model.remove_parameter(parameter)
            self._record(Outcome.TRANSFORMED, parameter)
        changed = bool(supplied)
        for variable, value in variables:
            changed |= self._freeze(model, variable, value)
        model.validate_nodes_and_infer_types()
        return changed

    def _freeze(self, model: Model, variable, given: np.ndarray | None) -> bool:
        name = variable.get_info().variable_id
        reads = [node for node in model.get_ops() if _touches(node, "ReadValue", name)]
        assigns = [node for node in model.get_ops() if _touches(node, "Assign", name)]
        try:
            initial = [_initial_value(read, assigns, reads, given) for read in reads]
        except Rejected as refusal:
            self._record(Outcome.REJECTED, reads[0] if reads else assigns[0], refusal.reason)
            return False
        for assign in assigns:
            model.remove_sink(assign)
        for read, value in zip(reads, initial, strict=True):
            frozen = _frozen(value, read)
            frozen.set_friendly_name(read.get_friendly_name())
            for target in read.output(0).get_target_inputs():
                if target.get_node().get_type_name() != "Assign":
                    target.replace_source_output(frozen.output(0))
            self._record(Outcome.TRANSFORMED, read)
        model.remove_variable(variable)
        return True


def _frozen(value: np.ndarray, node: Node) -> Constant:
    precision = precision_of(node.output(0))
    return opset1.constant(value.astype(np.bool_)) if precision == "boolean" else constant(value, precision)


def _touches(node: Node, kind: str, variable: str) -> bool:
    return node.get_type_name() == kind and node.get_attributes()["variable_id"] == variable


def _initial_value(read: Node, assigns: list[Node], reads: list[Node], value: np.ndarray | None) -> np.ndarray:
    """``value``: what is given for it; the graph's own without."""
    if value is not None:
        _check_fits(read.get_attributes()["variable_id"], read, value)
    else:
        reject_unless(read.get_input_size(), "no_initial_value", "the variable has no initial value in the graph")
        value = evaluate(read.input_value(0))
    reject_unless(value is not None, "not_constant", "the initial value of the variable is not a constant")
    own = {node.get_instance_id() for node in reads}
    for assign in assigns:
        written = assign.input_value(0).get_node()
        reject_unless(
            written.get_instance_id() in own,
            "assigned",
            f"the variable is assigned what {written.get_friendly_name()} computes",
        )
    for target in read.output(0).get_target_inputs():
        reader = target.get_node()
        reject_unless(
            reader.get_type_name() in _READERS,
            "other_reader",
            f"{reader.get_friendly_name()} ({reader.get_type_name()}) reads the variable as data",
        )
    return value


def _parameter(model: Model, name: str) -> Node:
    for parameter in model.get_parameters():
        if name == parameter.get_friendly_name() or name in parameter.output(0).get_names():
            return parameter
    known = ", ".join(parameter.get_friendly_name() for parameter in model.get_parameters())
    raise InputError(f'no input "{name}" to give a value to; the model has {known}')


def _check_fits(name: str, node: Node, value: np.ndarray) -> None:
    shape = node.get_output_partial_shape(0)
    fits = shape.rank.is_dynamic or (
        len(shape) == value.ndim
        and all(dim.is_dynamic or dim.get_length() == size for dim, size in zip(shape, value.shape, strict=True))
    )
    if not fits:
        raise InputError(f'the value for "{name}" has the shape {list(value.shape)}; it must fit {shape}')
