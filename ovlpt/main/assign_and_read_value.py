from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.dequantization import write_dequantization
from ovlpt.layer_transformation import LayerTransformation, consumers_of, insert_after
from ovlpt.openvino_api import Constant, Model, Node
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless

_ZERO = 1e-32


class AssignAndReadValueTransformation(LayerTransformation):
    """The variable holds integers: what is assigned is read raw, and the dequantization follows the ReadValue.

    The initial value must be zero, which is zero in every precision. ``model``: where the variables are.
    """

    operation = OPERATIONS["Assign"]

    def __init__(self, *args, model: Model | None = None, **settings):
        super().__init__(*args, **settings)
        self.model = model

    def can_be_transformed(self, node: Node) -> None:
        found = self.require_dequantization(node)
        self.check_row(node, found)
        reject_unless(found.multiply is not None, "no_scale", "what is assigned has no scale")
        reads = self._reads(node)
        reject_unless(
            len(reads) == 1, "no_read_value", f"{len(reads)} ReadValue read its variable; only one is supported"
        )
        initial = reads[0].input_value(0).get_node() if reads[0].get_input_size() else None
        is_zero = isinstance(initial, Constant) and bool((np.abs(values_of(initial)) <= _ZERO).all())
        reject_unless(is_zero, "initial_value", "the initial value of the variable is not a constant zero")

    def _reads(self, node: Node) -> list[Node]:
        variable = node.get_attributes()["variable_id"]
        operations = self.model.get_ops() if self.model is not None else []
        reads = (other for other in operations if other.get_type_name() == "ReadValue")
        return [read for read in reads if read.get_attributes()["variable_id"] == variable]

    def transform(self, node: Node) -> None:
        found, (read,) = self.dequantization(node), self._reads(node)
        original, targets = precision_of(read.output(0)), consumers_of(read.output(0))
        variable = self.model.get_variable_by_id(node.get_attributes()["variable_id"])
        info = variable.get_info()
        info.data_type = found.data.get_element_type()
        variable.update(info)
        initial = values_of(read.input_value(0).get_node())
        read.input(0).replace_source_output(constant(initial, found.data_precision).output(0))
        read.validate_and_infer_types()
        node.input(0).replace_source_output(found.data)
        node.validate_and_infer_types()
        output, nodes = write_dequantization(
            read.output(0), read.get_friendly_name(), found.scale, None, found.precision, original
        )
        insert_after(read.output(0), output, targets, nodes)
        if len(targets) == 1 and (consumer := targets[0].get_node()).get_type_name() == "FakeQuantize":
            self.register_new_node(consumer)  # visited again: it can take the dequantization in
