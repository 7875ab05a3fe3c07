from __future__ import annotations

from ovlpt.attributes import DisableCleanup, Precisions
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.graph.decomposition import decompose, quantized_values
from ovlpt.graph.dequantization import write_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.weights import weights_precision
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, Node
from ovlpt.operations import OPERATIONS
from ovlpt.precisions import DataPrecision
from ovlpt.trace import reject_unless

_ACTIVATIONS = (0, 1)  # the sequence and the hidden state; both kinds of cell


class RecurrentCellTransformation(LayerTransformation):
    """The dequantizations before a LSTMSequence or GRUSequence stay where they are: a plugin fuses the whole.

    Weights are decomposed here, and cleanup leaves all dequantizations before the cell alone.
    """

    @classmethod
    def type_names(cls) -> list[str]:
        return [*OPERATIONS["LSTMSequence"].type_names, *OPERATIONS["GRUSequence"].type_names]

    def can_be_transformed(self, node: Node) -> None:
        for port in _ACTIVATIONS:
            found = self.dequantization(node, port)
            if not found.empty and not isinstance(found.data.get_node(), Constant):
                reject_unless(
                    found.data_precision == "u8",
                    "activation_precision",
                    f"input {port} comes in {found.data_precision}; the cell takes u8",
                )
        for port in self._quantized_weights(node):
            details = self.details(node.input_value(port).get_node())
            reject_unless(
                details is not None, "dynamic_intervals", f"an interval end of input {port} is not a constant"
            )
            precision = self._precision(node.input_value(port).get_node(), details)
            reject_unless(
                not precision.has_zero_point,
                "weights_zero_point",
                f"input {port} has an asymmetric interval [{details.output_low.min():g}, {details.output_high.max():g}]",
            )
        protected = [port for port in range(node.get_input_size()) if self._chain(node, port)]
        reject_unless(
            protected or list(self._quantized_weights(node)),
            "not_quantized",
            "no input has a dequantization or quantized weights",
        )

    def transform(self, node: Node) -> None:
        for port in self._quantized_weights(node):
            self._decompose(node, port)
        for port in range(node.get_input_size()):
            for link in self._chain(node, port):
                self.attributes.set(link, DisableCleanup(True))

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
