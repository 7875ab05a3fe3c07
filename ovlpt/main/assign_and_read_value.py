from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.copies import copied_data
from ovlpt.graph.dequantization import write_dequantization
from ovlpt.layer_transformation import LayerTransformation, insert_after
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS
from ovlpt.trace import reject_unless

_ZERO = 1e-32


class AssignAndReadValueTransformation(LayerTransformation):
    """The variable holds integers: what is assigned is read raw, and the dequantization follows the ReadValue.

    The initial value must be zero, which is zero in every precision: a constant, or one that is broadcast to sizes that
    are known when the model runs, as those of a cache of keys and values. ``model``: where the variables are.
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
        reject_unless(
            initial is not None and self._is_zero(initial),
            "initial_value",
            "the initial value of the variable is not zero",
        )

    def _is_zero(self, initial: Node) -> bool:
        """Whether it has zeros only: a constant, or copies of one."""
        while not isinstance(initial, Constant):
            copied = copied_data(initial)
            if len(copied) != 1:
                return False
            initial = copied[0].get_node()
        return bool((np.abs(values_of(initial)) <= _ZERO).all())

    def _reads(self, node: Node) -> list[Node]:
        variable = node.get_attributes()["variable_id"]
        operations = self.model.get_ops() if self.model is not None else []
        reads = (other for other in operations if other.get_type_name() == "ReadValue")
        return [read for read in reads if read.get_attributes()["variable_id"] == variable]

    def transform(self, node: Node) -> None:
        found, (read,) = self.dequantization(node), self._reads(node)
        original, targets = precision_of(read.output(0)), self.consumers_of(read.output(0))
        variable = self.model.get_variable_by_id(node.get_attributes()["variable_id"])
        info = variable.get_info()
        info.data_type = found.data.get_element_type()
        variable.update(info)
        read.input(0).replace_source_output(_as_integers(read.input_value(0), found.data_precision))
        read.validate_and_infer_types()
        node.input(0).replace_source_output(found.data)
        node.validate_and_infer_types()
        output, nodes = write_dequantization(
            read.output(0), read.get_friendly_name(), found.scale, None, found.precision, original
        )
        insert_after(read.output(0), output, targets, nodes)
        for follower in self._followers(output):
            self.register_new_node(follower)  # visited again: the dequantization moves on, or into a FakeQuantize

    def _followers(self, value: Output) -> list[Node]:
        """What reads a value, or what copies it, in order."""
        found: dict[int, Node] = {}
        for target in self.consumers_of(value):
            node = target.get_node()
            found[node.get_instance_id()] = node
            if value in copied_data(node):
                found |= {each.get_instance_id(): each for each in self._followers(node.output(0))}
        return list(found.values())


def _as_integers(value: Output, precision: str) -> Output:
    """Zeros in another type."""
    node = value.get_node()
    if isinstance(node, Constant):
        return constant(values_of(node), precision).output(0)
    return opset1.convert(value, precision).output(0)
