"""A model in half or double precision, computed in f32."""

from __future__ import annotations

from typing import Any

from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.replaced import detach
from ovlpt.layer_transformation import ModelTransformation, insert_after, joins_interface, replace_output
from ovlpt.openvino_api import Constant, Model, Node, as_model, opset1
from ovlpt.precisions import REAL

_OTHERS = ("f16", "f64")
# What they read or give has a type that stands elsewhere, too.
_DECLARED = frozenset(("Assign", "If", "Loop", "Parameter", "ReadValue", "Result", "TensorIterator"))


class ConvertPrecision(ModelTransformation):
    """What computes in f16 or f64 computes in f32, as the CPU plugin has it; inputs and outputs of the model, its variables
    and its bodies keep their type.

    Constants that are only stored so, after a Convert to f32, stay.
    """

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        nodes = all_nodes(model)
        returned = [_return(node) for node in nodes if node.get_type_name() == "Convert"]
        if any(returned):
            detach(*nodes)
            nodes = all_nodes(model)
        others = [(node, kind) for node in nodes if (kind := node.get_type_name()) != "Constant"]
        if not any(_computes_otherwise(*each) for each in others):
            return any(returned)
        declared = [
            (target, precision_of(target.get_source_output()))
            for node, kind in others
            if kind in _DECLARED
            for target in node.inputs()
            if _is_computed(target)
        ]
        for node in nodes:
            if _other(node):
                _widen(node)
        for target, precision in declared:
            value = target.get_source_output()
            narrow = opset1.convert(value, precision)
            if target.get_node().get_type_name() == "Result":
                insert_after(value, narrow.output(0), [target], [narrow])
            else:
                target.replace_source_output(narrow.output(0))
        detach(*nodes)  # who holds those that were replaced would make them readers
        model.validate_nodes_and_infer_types()
        return True


def _is_computed(target: Any) -> bool:
    """Whether an input reads another type of what comes from no such node itself."""
    value = target.get_source_output()
    return precision_of(value) in _OTHERS and value.get_node().get_type_name() not in _DECLARED


def _widen(node: Node) -> None:
    """What a node gives in another type, in f32; after a node of a declared type for those that compute."""
    kind = node.get_type_name()
    if isinstance(node, Constant):
        wide = constant(values_of(node), "f32")
        wide.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), wide.output(0))
    elif kind == "Convert":
        _skip(node)
        wide = opset1.convert(node.input_value(0), "f32")
        wide.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), wide.output(0))
    elif kind in _DECLARED:
        for value in node.outputs():
            targets = [each for each in targets_of(value) if each.get_node().get_type_name() not in _DECLARED]
            if targets and precision_of(value) in _OTHERS:
                wide = opset1.convert(value, "f32")
                for target in targets:
                    target.replace_source_output(wide.output(0))


def _skip(convert: Node) -> None:
    """Operations read what is real before a Convert, which would do nothing: who reads a value is to be seen."""
    if precision_of(convert.input_value(0)) not in ("f32", *_OTHERS):
        return
    for target in convert.output(0).get_target_inputs():
        if target.get_node().get_type_name() != "Result":
            target.replace_source_output(convert.input_value(0))


def _return(node: Node) -> bool:
    """Of a Convert: ``f32(f16(x))`` of an x in f32 is x: a plugin without arithmetic of f16 rounds nothing on the way."""
    source = node.input_value(0).get_node()
    if source.get_type_name() != "Convert" or precision_of(node.output(0)) != "f32":
        return False
    if not _other(source) or precision_of(source.input_value(0)) != "f32":
        return False
    if joins_interface(source.input_value(0), node.output(0)):
        return False
    replace_output(node.output(0), source.input_value(0))
    return True


def _other(node: Node) -> str | None:
    """The type in which a value comes that is to be f32."""
    for output in node.outputs():  # no generator: it is asked of every node
        if (precision := output.get_element_type().get_type_name()) in _OTHERS:
            return precision
    return None


def _computes_otherwise(node: Node, kind: str) -> bool:
    if not _other(node):
        return False
    return kind != "Convert" or (
        precision_of(node.input_value(0)) in REAL and not isinstance(node.input_value(0).get_node(), Constant)
    )
