from __future__ import annotations

from typing import ClassVar

from ovlpt.attributes import DisableCleanup, Precisions
from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.decomposition import decompose, quantized_values
from ovlpt.graph.dequantization import write_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import make_weights_real, quantized_weights
from ovlpt.graph.weights import weights_precision
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.main.fake_quantize_decomposition import write_decomposition
from ovlpt.openvino_api import Constant, Node
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.precisions import DataPrecision
from ovlpt.trace import Reason, Rejected, reject_unless

_ACTIVATIONS = (0, 1)  # the sequence and the hidden state; both kinds of cell
# What lets a dequantization through on its way to the cell; the native class leaves these three out.
_MOVABLE = {name for name, row in OPERATIONS.items() if row.precision_preserved} - {"Concat", "Gather", "Slice"}


class RecurrentCellTransformation(LayerTransformation):
    """The dequantizations before a LSTMSequence or GRUSequence stay where they are: a plugin fuses the whole.

    Weights are decomposed here, and quantizations of activations that were left alone where a Transpose or the like lies
    between; cleanup leaves all dequantizations before the cell alone.
    """

    shapes_follow: ClassVar[bool] = False  # as `write_decomposition` has it
    is_whole: ClassVar[bool] = True  # nothing is done where one input is unusable

    @classmethod
    def type_names(cls) -> list[str]:
        return [name for kind in RECURRENT for name in OPERATIONS[kind].type_names]

    def can_be_transformed(self, node: Node) -> None:
        for quantize, _ in self._waiting(node):
            precision = self._precision(quantize, self.details(quantize)).precision
            reject_unless(
                precision == "u8",
                "activation_precision",
                f"{quantize.get_friendly_name()} above it asks for {precision}; the cell takes u8",
            )
        for port in _ACTIVATIONS:
            found = self.dequantization(node, port)
            if not found.empty and not isinstance(found.data.get_node(), Constant):
                reject_unless(
                    found.data_precision == "u8",
                    "activation_precision",
                    f"input {port} is {found.data_precision}; the cell takes u8",
                )
        unusable = self._unusable(node)
        if unusable is not None and self.is_whole:
            raise Rejected(unusable[1])
        if self._has_to_be_whole and not self._waiting(node):
            reject_unless(
                len(quantized_weights(node)) == len(RECURRENT[node.get_type_name()]),
                "not_quantized",
                "its weights are real numbers",
            )
            for port in _ACTIVATIONS:
                source = node.input_value(port).get_node()
                reject_unless(
                    isinstance(source, Constant) or not self.dequantization(node, port).empty,
                    "not_dequantized",
                    f"input {port} has no dequantization: it was lost above",
                )
        reject_unless(
            self._waiting(node)
            or any(self._chain(node, port) for port in self._ports(node))
            or self._to_decompose(node),
            "not_quantized",
            "no input has a dequantization or quantized weights",
        )

    def rejected(self, node: Node) -> bool:
        return self._has_to_be_whole and make_weights_real(node)

    @property
    def _has_to_be_whole(self) -> bool:
        """Whether the plugin takes data, state and both weights as integers, or all as real numbers."""
        return self.params.recurrent_on_one_grid and self.is_whole

    def transform(self, node: Node) -> None:
        if waiting := self._waiting(node):
            for quantize in {quantize.get_instance_id(): quantize for quantize, _ in waiting}.values():
                self._decompose_activation(quantize)
            for _, between in waiting:
                for moved in between:
                    self.register_new_node(moved)  # visited next: the dequantization goes through
            self.register_new_node(node)
            return
        ports = self._ports(node)
        for port in self._to_decompose(node):
            self._decompose(node, port)
        for port in ports:
            for link in self._chain(node, port):
                self.attributes.set(link, DisableCleanup(True))

    def _waiting(self, node: Node) -> list[tuple[Node, list[Node]]]:
        """Quantizations of activations that were left alone so far, each with the operations down to the cell."""
        found = []
        for port in _ACTIVATIONS:
            between: list[Node] = []
            read = above = node.input_value(port).get_node()
            while above.get_type_name() in _MOVABLE and self.is_precision_preserved(above):
                between.insert(0, above)
                above = above.input_value(0).get_node()
            if not between or above.get_type_name() != "FakeQuantize" or is_constant_path(read):
                continue
            details = self.details(above)
            if details is not None and all(end.size == 1 for end in details.intervals):
                found.append((above, between))
        return found

    def _decompose_activation(self, quantize: Node) -> None:
        details = self.details(quantize)
        precision = self._precision(quantize, details)
        parts = decompose(details, precision, self.params.update_precisions)
        stored = precision.precision if self.params.update_precisions else precision_of(quantize.output(0))
        new = write_decomposition(quantize, stored, details.levels, parts, "f32", self.shapes_follow)
        self.attributes.move(quantize, new)
        self.register_new_node(new)

    def _ports(self, node: Node) -> range:
        """The inputs that are handled: all, or those before the first unusable one."""
        unusable = self._unusable(node)
        return range(node.get_input_size() if unusable is None else unusable[0])

    def _to_decompose(self, node: Node) -> list[int]:
        return [port for port in self._quantized_weights(node) if port in self._ports(node)]

    def _unusable(self, node: Node) -> tuple[int, Reason] | None:
        """The first input whose quantized constant the cell cannot take, and why."""
        for port in self._quantized_weights(node):
            quantize = node.input_value(port).get_node()
            details = self.details(quantize)
            if details is None:
                return port, Reason("dynamic_intervals", f"an interval bound of input {port} is not a constant")
            if self._precision(quantize, details).has_zero_point:
                text = f"input {port} has a zero point on {details.ends} at {details.levels} levels"
                return port, Reason("weights_zero_point", text)
        return None

    @staticmethod
    def _quantized_weights(node: Node) -> list[int]:
        """The inputs with a FakeQuantize over a constant."""

        def is_quantized(source: Node) -> bool:
            return source.get_type_name() == "FakeQuantize" and isinstance(source.input_value(0).get_node(), Constant)

        return [port for port, value in enumerate(node.input_values()) if is_quantized(value.get_node())]

    def _precision(self, quantize: Node, details: QuantizationDetails) -> DataPrecision:
        required = self.attributes.get(quantize.output(0), Precisions)
        allowed = required.value if required else self.params.default_precisions
        return weights_precision(details, allowed)

    def _decompose(self, node: Node, port: int) -> None:
        quantize = node.input_value(port).get_node()
        details = self.details(quantize)
        precision = self._precision(quantize, details)
        parts = decompose(details, precision, self.params.update_precisions)
        original = precision_of(quantize.output(0))
        stored = precision.precision if self.params.update_precisions else original
        integers = quantized_values(values_of(quantize.input_value(0).get_node()), details, parts, precision.precision)
        output, _ = write_dequantization(
            constant(integers, stored).output(0),
            quantize.get_friendly_name(),
            parts.scale,
            precision=self.params.deq_precision,
            output_precision=original,
        )
        replace_output(quantize.output(0), output)

    def _chain(self, node: Node, port: int) -> list[Node]:
        """The nodes of the dequantization on an input: Multiply, Subtract and Convert."""
        multiply = node.input_value(port).get_node()
        if multiply.get_type_name() != "Multiply":
            return []
        before = multiply.input_value(0).get_node()
        if before.get_type_name() == "Subtract":
            return [multiply, before, before.input_value(0).get_node()]
        return [multiply, before]
