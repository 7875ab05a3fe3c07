"""Which executed layer holds an operation, and what is said of an operation once its layer is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovlpt.device.execution_types import LayerExecution
from ovlpt.device.hazards import epilogue
from ovlpt.graph.names import given, original, renamed
from ovlpt.openvino_api import Model, Node
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.precisions import INT8
from ovlpt.trace import Reason

CONVERTS = frozenset(("Reorder", "Convert"))  # layers that change a type or a layout, and nothing else
WEIGHTED_LAYERS = frozenset(
    ("Convolution", "BinaryConvolution", "DeformableConvolution", "Deconvolution", "FullyConnected", "MatMul", "Gemm",
     "LSTMSequence", "LSTMCell", "GRUSequence", "GRUCell", "RNNSeq", "RNNCell", "ScaledDotProductAttention")
)  # fmt: skip
_CELLS = frozenset(("LSTMSequence", "GRUSequence", "RNNSequence", "LSTMCell", "GRUCell", "RNNCell"))


def has_weights(operation: str) -> bool:
    """Whether a type of operation multiplies with weights, or with other data as a MatMul can: what int8 speeds up."""
    row = OPERATIONS.get(operation)
    return operation in _CELLS or (row is not None and row.kind == "weighted")


def names_of(layer: LayerExecution) -> list[str]:
    """The name of the layer, and those of the operations that it holds."""
    return [layer.name, *layer.original_names]


def owners(lowered: Model, wanted: Iterable[str]) -> Iterator[tuple[str, Node]]:
    """Names that a layer can have of an operation, each with the operation: the plugin may call the layer after the
    scale or the bias that follows it. ``wanted``: names of operations in the lowered model.
    """
    wanted = frozenset(wanted)
    for node in lowered.get_ordered_ops():
        name = node.get_friendly_name()
        if name in wanted:
            for each in (name, given(name), *epilogue(node).names[:2]):
                yield each, node


class Layers:
    """The executed layers of a model by the operations that they hold."""

    def __init__(self, execution: Iterable[LayerExecution], lowered: Model):
        weighted = [node.get_friendly_name() for node in lowered.get_ops() if has_weights(node.get_type_name())]
        owner = dict(owners(lowered, weighted))
        self._nodes = {renamed(node.get_friendly_name()): node for node in owner.values()}
        self._weighted: dict[str, LayerExecution] = {}
        self._any: dict[str, LayerExecution] = {}
        for layer in execution:
            if layer.layer_type in ("Const", "Input", "Output", *CONVERTS):
                continue
            names = names_of(layer)
            if layer.layer_type in WEIGHTED_LAYERS:
                for node in (owner[name] for name in names if name in owner):
                    self._weighted.setdefault(renamed(node.get_friendly_name()), layer)
            for name in names:
                known = self._any.setdefault(name, layer)
                if layer.layer_type in WEIGHTED_LAYERS and known.layer_type not in WEIGHTED_LAYERS:
                    self._any[name] = layer

    def of(self, name: str, operation: str) -> LayerExecution | None:
        """The layer that holds an operation of the transformed model; None where none is known to."""
        if has_weights(operation):
            return self._weighted.get(name) or self._any.get(original(name)) or self._any.get(name)
        return self._any.get(original(name)) or self._any.get(name)

    def lowered(self, name: str) -> Node | None:
        """An operation with weights in the model that was compiled."""
        return self._nodes.get(name)


def without_kernel(layer: LayerExecution, node: Node | None = None) -> tuple[Reason, str | None]:
    """Why an operation that reads integers in the transformed model runs in float, and what would help.

    ``node``: the operation with weights in the model that was compiled.
    """
    is_recurrent = node is not None and node.get_type_name() in RECURRENT
    if is_recurrent and node.get_attributes().get("linear_before_reset"):
        text = "it is a GRU with linear_before_reset, for which the plugin has no int8 kernel"
        return Reason("no_kernel", text), "use a GRU without linear_before_reset"
    if node is not None and not is_recurrent and node.input_value(1).get_node().get_type_name() == "Subtract":
        text = f"its weights have a zero point, for which the plugin has no int8 kernel ({layer.exec_type})"
        return Reason("weights_zero_point", text), "quantize the weights symmetrically, to i8"
    if node is None and layer.precision in INT8:
        text = "it reads integers and computes in float, as the plugin's elementwise kernels do"
        return Reason("float_kernel", text), None
    text = f"it could read integers, but the plugin has no int8 kernel for it here and took {layer.exec_type}"
    return Reason("no_kernel", text), None
