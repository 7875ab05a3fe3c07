"""A model in half precision, computed in f32."""

from __future__ import annotations

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.layer_transformation import ModelTransformation, insert_after, replace_output
from ovlpt.openvino_api import Constant, Model, Node, as_model, opset1

_STATEFUL = frozenset(("Assign", "ReadValue", "If", "Loop", "TensorIterator"))


class ConvertPrecision(ModelTransformation):
    """What computes in f16 computes in f32, as the CPU plugin has it; inputs and outputs of the model keep their type.

    Constants that are only stored in f16, behind a Convert to f32, stay. So does a model with variables or bodies, whose
    types are declared elsewhere.
    """

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        nodes = model.get_ordered_ops()
        if any(node.get_type_name() in _STATEFUL for node in nodes) or not any(map(_computes_in_f16, nodes)):
            return False
        results = [node for node in nodes if node.get_type_name() == "Result" and _gives_f16(node)]
        for node in nodes:
            if isinstance(node, Constant) and _gives_f16(node):
                wide = constant(values_of(node), "f32")
                wide.set_friendly_name(node.get_friendly_name())
                replace_output(node.output(0), wide.output(0))
            elif node.get_type_name() == "Parameter" and _gives_f16(node):
                targets = node.output(0).get_target_inputs()
                wide = opset1.convert(node, "f32")
                for target in targets:
                    target.replace_source_output(wide.output(0))
            elif node.get_type_name() == "Convert" and _gives_f16(node):
                wide = opset1.convert(node.input_value(0), "f32")
                wide.set_friendly_name(node.get_friendly_name())
                replace_output(node.output(0), wide.output(0))
        model.validate_nodes_and_infer_types()
        for result in results:
            value = result.input_value(0)
            narrow = opset1.convert(value, "f16")
            insert_after(value, narrow.output(0), [result.input(0)], [narrow])
        model.validate_nodes_and_infer_types()
        return True


def _gives_f16(node: Node) -> bool:
    return any(precision_of(output) == "f16" for output in node.outputs())


def _computes_in_f16(node: Node) -> bool:
    return not isinstance(node, Constant) and node.get_type_name() != "Convert" and _gives_f16(node)
