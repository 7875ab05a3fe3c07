"""Models whose parts are exchanged: the nodes for another model's, the outputs for others."""

from __future__ import annotations

from collections.abc import Iterable

from ovlpt.graph.replaced import detach_results
from ovlpt.openvino_api import Assign, Model, Node, Output, opset1


def end_in(model: Model, values: Iterable[Output], inputs: Iterable[Node] = ()) -> Model:
    """``model`` itself with these outputs in place of its own, and with more ``inputs``, Parameters.

    Variables are stored as before: a plugin reads none that are not.
    """
    results = [opset1.result(value) for value in values]
    for result in model.get_results():
        model.remove_result(result)
    model.add_results(results)
    if inputs := list(inputs):
        model.add_parameters(inputs)
    return model


def graft(model: Model, transformed: Model) -> None:
    """Give ``model`` the graph of ``transformed``, a changed clone of it with the same inputs, outputs and sinks, which is
    of no use after.

    Both are valid, and so is the result but for its Results, which report the types of what they read now.
    """
    for mine, theirs in zip(model.get_parameters(), transformed.get_parameters(), strict=True):
        for target in theirs.output(0).get_target_inputs():
            target.replace_source_output(mine.output(0))
    for sink in model.get_sinks():
        model.remove_sink(sink)
    for variable in model.get_variables():
        model.remove_variable(variable)
    if variables := transformed.get_variables():
        model.add_variables(variables)
    if sinks := transformed.get_sinks():
        model.add_sinks([_addable(sink, transformed) for sink in sinks])
    for mine, theirs in zip(model.get_results(), transformed.get_results(), strict=True):
        mine.input(0).replace_source_output(theirs.input_value(0))
        mine.validate_and_infer_types()
    detach_results(transformed.get_results())


def _addable(sink: Node, model: Model) -> Node:
    """Python knows the first version of Assign (opset3) as a plain node, which no model takes as a sink; the second does
    the same.
    """
    if isinstance(sink, Assign):
        return sink
    variable = model.get_variable_by_id(sink.get_attributes()["variable_id"])
    reads = (node for node in model.get_ops() if node.get_type_name() == "ReadValue")
    read = next(node for node in reads if node.get_attributes()["variable_id"] == variable.get_info().variable_id)
    # the constructor takes nodes only, and the value may be one of several outputs
    assign = Assign(read, variable, sink.get_friendly_name())
    assign.input(0).replace_source_output(sink.input_value(0))
    return assign
