"""A normalization with a branch for training and one for inference."""

from __future__ import annotations

from ovlpt.fusions.evaluation import evaluate, is_constant
from ovlpt.fusions.fusion import Fusion, take_over
from ovlpt.openvino_api import Model, Node, Output
from ovlpt.trace import reject_unless

_STATISTICS = frozenset(("MVN", "ReduceMean", "ReduceSum"))  # what takes mean or variance from the data
_NORMALIZES = frozenset(("BatchNormInference", "Multiply", "Divide")) | _STATISTICS
_THEN, _ELSE = 0, 1


class BatchNormBranchFusion(Fusion):
    """An If over a training and an inference normalization is replaced by the inference branch.

    The front ends leave Switch and Merge as such an If. Three things stop it: the two branches normalize
    different data, the branch that the condition takes is the training one (it normalizes with the statistics
    of its batch), or the inference branch takes batch statistics, too. The condition has to be constant;
    where it is an input, the caller can supply its value (`FreezeVariables`), which makes the training branch
    dead.
    """

    operations = ("opset8.If",)

    def concerns(self, node: Node) -> bool:
        return any(_kinds(node, branch) & _NORMALIZES for branch in (_THEN, _ELSE))

    def can_be_transformed(self, node: Node) -> None:
        condition = evaluate(node.input_value(0))
        reject_unless(condition is not None, "condition", "the condition is not a constant")
        taken = _THEN if condition.all() else _ELSE
        sources = [_data_sources(node, branch) for branch in (_THEN, _ELSE)]
        reject_unless(
            sources[0] == sources[1] and len(sources[0]) == 1,
            "different_data",
            "the branches do not normalize the same data",
        )
        training = [_takes_batch_statistics(node, branch) for branch in (_THEN, _ELSE)]
        reject_unless(
            not (training[taken] and training[1 - taken]),
            "inference_is_training",
            "the inference branch normalizes with the statistics of its batch, as the training branch does",
        )
        reject_unless(not training[taken], "training_output", "the condition selects the training branch")
        reject_unless(_kinds(node, taken) & _NORMALIZES, "no_normalization", "the selected branch has no normalization")

    def transform(self, node: Node) -> None:
        branch = _THEN if evaluate(node.input_value(0)).all() else _ELSE
        body = _body(node, branch)
        parameters, results = body.get_parameters(), body.get_results()
        for description in node.get_input_descriptions(branch):
            outer = node.input_value(description.input_index)
            for target in parameters[description.body_parameter_index].output(0).get_target_inputs():
                target.replace_source_output(outer)
        for description in node.get_output_descriptions(branch):
            inner = results[description.body_value_index].input_value(0)
            take_over(node.output(description.output_index), inner)


def _body(node: Node, branch: int) -> Model:
    return node.get_function(branch)


def _kinds(node: Node, branch: int) -> set[str]:
    return {operation.get_type_name() for operation in _body(node, branch).get_ops()}


def _data_inputs(node: Node, branch: int) -> list[tuple[Output, Node]]:
    """The outer values that are not constant, each with the Parameter that it feeds."""
    parameters = _body(node, branch).get_parameters()
    pairs = [
        (node.input_value(description.input_index), parameters[description.body_parameter_index])
        for description in node.get_input_descriptions(branch)
    ]
    return [(outer, parameter) for outer, parameter in pairs if not is_constant(outer)]


def _data_sources(node: Node, branch: int) -> set[tuple[int, int]]:
    """The data that decides the branch's numbers; a Parameter that nothing reads does not."""
    return {
        (outer.get_node().get_instance_id(), outer.get_index())
        for outer, parameter in _data_inputs(node, branch)
        if parameter.output(0).get_target_inputs()
    }


def _takes_batch_statistics(node: Node, branch: int) -> bool:
    reached = {parameter.get_instance_id() for _, parameter in _data_inputs(node, branch)}
    for operation in _body(node, branch).get_ordered_ops():
        sources = [value.get_node().get_instance_id() in reached for value in operation.input_values()]
        kind = operation.get_type_name()
        if not any(sources) or kind == "ShapeOf" or (kind == "ConvertLike" and not sources[0]):
            continue  # shapes and element types are not statistics
        if kind in _STATISTICS or (kind == "BatchNormInference" and sum(sources) > 1):
            return True
        reached.add(operation.get_instance_id())
    return False
