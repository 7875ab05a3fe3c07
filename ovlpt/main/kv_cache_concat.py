"""A cache of keys and values that a quantizer's FakeConvert rounds to f8 is stored in f8.

OpenVINO's NPU plugin does so before it compiles a language model (``optimize_kv_cache_storage``); the CPU's and the GPU's
do not. None of it is part of `LowPrecision`: run `Float8Cache`, or its passes in a Manager of your own. The model then has
the same numbers, and variables of a quarter of the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ovlpt.graph.constants import constant, precision_of, same_operation, values_of
from ovlpt.layer_transformation import LayerTransformation, ModelTransformation, replace_output
from ovlpt.main.concat import ConcatTransformation
from ovlpt.openvino_api import Constant, GraphRewrite, Manager, Model, Node, Output, as_model, opset1
from ovlpt.precisions import FLOAT8
from ovlpt.trace import reject_unless

_LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
_REPEATS = ("Broadcast", "Reshape", "Unsqueeze")  # of the heads that groups of queries share
_MAY_READ = frozenset(("Assign", "FakeConvert", "Result", "ShapeOf"))


def _is_number(value: Output) -> bool:
    return isinstance(value.get_node(), Constant) and not value.get_shape()


class MoveFakeConvertUpThroughKVCacheConcat(LayerTransformation):
    """``FakeConvert(concat(past, new))`` becomes ``concat(FakeConvert(past), FakeConvert(new))`` before an attention.

    ``past`` is a Parameter, or a Gather of a ReadValue; scale and shift are single numbers; besides the FakeConvert,
    only results, variables and shapes read the Concat. Source: the native pass of the same name, in 2026's library.
    """

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset13.ScaledDotProductAttention"]

    def can_be_transformed(self, node: Node) -> None:
        moves = [self._quantizer(node.input_value(port)) for port in (1, 2)]
        found = all(move is not None for move in moves)
        reject_unless(found, "not_quantized", "its keys or values are not a cache after a FakeConvert")
        reject_unless(
            any(map(self._is_free, moves)), "several_consumers", "other operations read the cache in full precision"
        )

    def transform(self, node: Node) -> None:
        for quantizer in filter(self._is_free, [self._quantizer(node.input_value(port)) for port in (1, 2)]):
            concat, name = quantizer.input_value(0).get_node(), quantizer.get_friendly_name()
            parts = []
            for number, part in enumerate(concat.input_values(), 1):
                parts.append(same_operation(quantizer, [part, *quantizer.input_values()[1:]]))
                parts[-1].set_friendly_name(f"{name}_{number}")
            joined = same_operation(concat, [part.output(0) for part in parts])
            joined.set_friendly_name(concat.get_friendly_name())
            replace_output(quantizer.output(0), joined.output(0))
            replace_output(concat.output(0), joined.output(0))

    @staticmethod
    def _quantizer(value: Output) -> Node | None:
        """The FakeConvert of a cache that an attention reads."""
        node = value.get_node()
        while node.get_type_name() in _REPEATS:
            node = node.input_value(0).get_node()
        if node.get_type_name() != "FakeConvert" or not all(map(_is_number, node.input_values()[1:])):
            return None
        concat = node.input_value(0).get_node()
        if concat.get_type_name() != "Concat" or concat.get_input_size() != 2:
            return None
        past = concat.input_value(0).get_node()
        if past.get_type_name() == "Gather":
            past = past.input_value(0).get_node()
            past = past.input_value(0).get_node() if past.get_type_name() == "Convert" else past
            return node if past.get_type_name() == "ReadValue" else None
        return node if past.get_type_name() == "Parameter" else None

    @staticmethod
    def _is_free(quantizer: Node) -> bool:
        targets = quantizer.input_value(0).get_target_inputs()
        return {target.get_node().get_type_name() for target in targets} <= _MAY_READ


class FakeConvertDecomposition(LayerTransformation):
    """``f8(clamp(x * scale - shift))`` and its dequantization, ``(real(…) + shift) / scale``, for a FakeConvert.

    Source: the native pass of the same name, in OpenVINO's common transformations; written as a Subtract and a Multiply,
    as LPT reads it. Scale and shift have to be constants.
    """

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset13.FakeConvert"]

    def can_be_transformed(self, node: Node) -> None:
        constants = [value.get_node() for value in node.input_values()[1:]]
        reject_unless(
            all(isinstance(each, Constant) for each in constants), "not_constant", "its scale is not a constant"
        )
        same = {precision_of(value) for value in node.input_values()}
        reject_unless(len(same) == 1, "mixed_precisions", "its scale is of another type than its data")

    def transform(self, node: Node) -> None:
        data, scale, *rest = node.input_values()
        precision, kind = precision_of(data), node.get_attributes()["destination_type"]
        shift = rest[0] if rest and np.any(values_of(rest[0].get_node())) else None
        value = opset1.multiply(data, scale)
        if shift is not None:
            value = opset1.subtract(value, shift)
        stored = opset1.convert(opset1.clamp(value, -_LARGEST[kind], _LARGEST[kind]), kind)
        value = opset1.convert(stored, precision)
        if shift is not None:
            value = opset1.subtract(value, constant(-values_of(shift.get_node()), precision))
        value = opset1.multiply(value, constant(1 / values_of(scale.get_node()), precision))
        value.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), value.output(0))


@dataclass(frozen=True)
class _Chain:
    """Operations one after the other, by their names; ``data`` is what the first one reads."""

    data: Output
    links: dict[str, Node]

    @classmethod
    def above(cls, value: Output, kinds: Sequence[str], optional: str = "Subtract") -> _Chain | None:
        """``kinds`` from the last one up."""
        links: dict[str, Node] = {}
        for kind in kinds:
            node = value.get_node()
            if node.get_type_name() == kind:
                links[kind], value = node, node.input_value(0)
            elif kind != optional:
                return None
        return cls(value, links)

    def numbers(self) -> dict[str, np.ndarray]:
        """The constants of its links."""
        return {
            kind: values_of(link.input_value(1).get_node())
            for kind, link in self.links.items()
            if kind in ("Multiply", "Subtract") and isinstance(link.input_value(1).get_node(), Constant)
        }

    def again(self, value: Output) -> Output:
        """The same links after another value, but for a Clamp: what comes from f8 fits it."""
        for kind in ("Clamp", *reversed(self.links)):
            if kind in self.links and kind != "Clamp":
                value = same_operation(self.links[kind], [value, *self.links[kind].input_values()[1:]]).output(0)
        return value


_DOWN = ("Convert", "Clamp", "Subtract", "Multiply")
_UP = ("Multiply", "Subtract", "Convert")


class KVCacheConcat(LayerTransformation):
    """The variable of a cache holds f8: what is read from it passes the Concat and is stored again without real numbers in memory.

    Of ``Assign(dequantized(concat(quantized(gather(ReadValue)), quantized(new))))`` with equal quantizations. On the way
    from the variable and to it the numbers are dequantized and quantized again, so that those of the variable are on the
    same grid as those of the Concat. ``model``: where the variables are. Source: the native pass of the same name, in
    2026's library. Unlike there, a variable that several operations read is left alone.
    """

    def __init__(self, *args: Any, model: Model | None = None, **settings: Any):
        super().__init__(*args, **settings)
        self.model = model

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset6.Assign"]

    def can_be_transformed(self, node: Node) -> None:
        reject_unless(
            self._parts(node) is not None, "not_quantized", "it stores no Concat of its variable and new data in f8"
        )
        _, _, past, new = self._parts(node)
        same = {kind: number.tobytes() for kind, number in past.numbers().items()} == {
            kind: number.tobytes() for kind, number in new.numbers().items()
        }
        reject_unless(same, "mixed_precisions", "what is stored and what is new have different scales")
        reject_unless(len(self._reads(node)) == 1, "no_read_value", "several operations read its variable")

    def _reads(self, node: Node) -> list[Node]:
        variable = node.get_attributes()["variable_id"]
        operations = self.model.get_ops() if self.model is not None else []
        return [
            each
            for each in operations
            if each.get_type_name() == "ReadValue" and each.get_attributes()["variable_id"] == variable
        ]

    @staticmethod
    def _parts(assign: Node) -> tuple[_Chain, Node, _Chain, _Chain] | None:
        """The dequantization, the Concat, and the quantizations of what is stored and of what is new."""
        up = _Chain.above(assign.input_value(0), _UP)
        concat = up.data.get_node() if up is not None else None
        if concat is None or concat.get_type_name() != "Concat" or concat.get_input_size() != 2:
            return None
        past, new = (_Chain.above(value, _DOWN) for value in concat.input_values())
        if past is None or new is None or precision_of(concat.output(0)) not in FLOAT8:
            return None
        gather = past.data.get_node()
        read = gather.input_value(0).get_node() if gather.get_type_name() == "Gather" else gather
        is_cache = read.get_type_name() == "ReadValue" and read is not gather and read.get_input_size() == 1
        names = [each.get_attributes()["variable_id"] for each in (read, assign)] if is_cache else [0, 1]
        return (up, concat, past, new) if names[0] == names[1] else None

    def transform(self, node: Node) -> None:
        up, concat, past, _ = self._parts(node)
        (read,), kind = self._reads(node), precision_of(concat.output(0))
        variable = self.model.get_variable_by_id(node.get_attributes()["variable_id"])
        info = variable.get_info()
        info.data_type = concat.get_output_element_type(0)
        variable.update(info)
        read.input(0).replace_source_output(opset1.convert(read.input_value(0), kind).output(0))
        read.validate_and_infer_types()
        gather = past.data.get_node()
        gather.validate_and_infer_types()
        replace_output(concat.input_value(0), past.again(up.again(gather.output(0))))
        node.input(0).replace_source_output(past.again(up.again(concat.output(0))))
        node.validate_and_infer_types()


class Float8Cache(ModelTransformation):
    """The passes above and `ConcatTransformation` for f8, in the order in which the NPU plugin runs them.

    Variables whose keys or values pass a FakeConvert of scalar scale hold f8 after it; other models stay as they are. The
    trace says which. The CPU plugin runs the result from OpenVINO 2025 on; before, it cannot concatenate f8.
    """

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        settings = {**self.settings(), "params": replace(self.params, default_precisions=FLOAT8)}
        for step in (
            MoveFakeConvertUpThroughKVCacheConcat(**settings),
            FakeConvertDecomposition(**settings),
            ConcatTransformation(**settings),
            KVCacheConcat(model=model, **settings),
        ):
            manager, rewrite = Manager(), GraphRewrite()
            rewrite.add_matcher(step)
            manager.register_pass(rewrite)
            manager.run_passes(model)
        return True
