from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, constant_above, is_real, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.dequantization import dequantizations_below
from ovlpt.layer_transformation import LayerTransformation, replace_output
from ovlpt.openvino_api import Constant, Node, Output, opset1
from ovlpt.precisions import INT8, LEVELS, max_value, min_value
from ovlpt.trace import Reason

_NEAR = 2e-3  # of a scale: constants may be stored as f16
_WHOLE = 1e-5  # of a number of steps: what f32 leaves of a whole one
_OF_PROBABILITIES = 256  # the reciprocal of ONNX Runtime's scale for what lies between 0 and 1
_PROBABILITIES = frozenset(("Sigmoid", "Softmax"))


class RoundedIntegers(LayerTransformation):
    """``Convert(x / s + z)``, z an integer of the type converted to, is a quantization: it rounds and saturates.

    So OpenVINO reads QLinearAdd, QLinearMul and QLinearConcat of ONNX Runtime; QLinearSigmoid, QLinearLeakyRelu,
    QLinearSoftmax and QLinearAveragePool as ``Convert(x / s) + z``. A Convert cuts, and what lies beyond the type wraps
    around or not, as the plugin has it; by their definition these operations round to the nearest and saturate. A
    FakeQuantize to the integers of the type before the Convert does that.

    The cast of an image, ``Convert(255 * x)``, stays one: it is taken for a quantization only where the zero point is stored as
    integers of the type, or where all its readers undo the scale and the zero point, as in an IR whose constants are
    folded. There a scale of whole steps, without a zero point, is no evidence: people write such ones, calibrations do not.
    """

    quiet = True
    why = Reason("stored_integers", "it stores a quantized value, and would cut it where the quantizer rounds")

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convert", "opset1.Add"]

    def concerns(self, node: Node) -> bool:
        return _value_of(node) is not None

    def transform(self, node: Node) -> None:
        _round(node, _value_of(node))


def _round(node: Node, value: Output) -> None:
    """Let the values ``value``, scaled and shifted, be rounded to the integers that ``node`` gives."""
    precision = precision_of(node.output(0))
    levels = max(LEVELS[precision])
    low, high = (constant(np.float32(end(precision, levels))) for end in (min_value, max_value))
    quantize = opset1.fake_quantize(value, low, high, low, high, levels)
    stored = opset1.convert(quantize, precision)
    stored.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), stored.output(0))


def _value_of(node: Node) -> Output | None:
    """What a node stores as integers of 8 bits, scaled and shifted; None where it does not, or rounds already."""
    kind = node.get_type_name()
    if kind not in ("Convert", "Add") or precision_of(node.output(0)) not in INT8:
        return None
    return _shifted_integers(node) if kind == "Add" else _converted(node)


def _shifted_integers(add: Node) -> Output | None:
    """Of ``Convert(x / s) + z``: ``x / s + z``."""
    for port in (0, 1):
        convert, shift = add.input_value(port).get_node(), add.input_value(1 - port).get_node()
        if (
            convert.get_type_name() == "Convert"
            and isinstance(shift, Constant)
            and _scale_of(convert.input_value(0)) is not None
        ):
            zero_point = opset1.convert(shift, precision_of(convert.input_value(0)))
            return opset1.add(convert.input_value(0), zero_point).output(0)
    return None


def _converted(convert: Node) -> Output | None:
    """Of ``Convert(x / s + z)``: ``x / s + z``."""
    value = convert.input_value(0)
    if not is_real(precision_of(value)):
        return None
    shift = _shift_of(value.get_node())
    if shift is not None and _scale_of(shift[0]) is not None:
        stored = shift[1].get_node()
        if stored.get_type_name() == "Convert" and precision_of(stored.input_value(0)) == precision_of(
            convert.output(0)
        ):
            return value
    return value if _is_undone(convert, value, shift) else None


def _shift_of(node: Node) -> tuple[Output, Output] | None:
    """Of ``x + constant``: both; a constant may be converted."""
    if node.get_type_name() != "Add":
        return None
    for port in (1, 0):
        if constant_above(node.input_value(port)) is not None:
            return node.input_value(1 - port), node.input_value(port)
    return None


def _is_undone(convert: Node, value: Output, shift: tuple[Output, Output] | None) -> bool:
    """Whether all readers subtract the zero point again, or, where that is 0, multiply by the scale that ``value`` was
    divided by.
    """
    chains = [chain for reader in readers_of(convert) for chain in dequantizations_below(reader)]
    if not chains or any(chain.multiply is None or chain.data != convert.output(0) for chain in chains):
        return False
    if shift is not None:
        zero_point = constant_above(shift[1])
        return bool(zero_point.any()) and all(
            chain.zero_point is not None and np.all(chain.zero_point == zero_point) for chain in chains
        )
    scale = _scale_of(value)
    if scale is None or (precision_of(convert.output(0)) == "u8" and not _is_of_calibration(value.get_node(), scale)):
        return False
    return all(chain.zero_point is None and np.allclose(chain.scale, scale, rtol=_NEAR, atol=0) for chain in chains)


def _scale_of(value: Output) -> np.ndarray | None:
    """What a real value was divided by, if by a constant."""
    node = value.get_node()
    if node.get_type_name() not in ("Divide", "Multiply") or not is_real(precision_of(value)):
        return None
    divisor = constant_above(node.input_value(1))
    if divisor is None or not divisor.all():
        return None
    return divisor if node.get_type_name() == "Divide" else 1 / divisor


def _is_of_calibration(node: Node, scale: np.ndarray) -> bool:
    """Whether no person writes such a scale, as they do 255 of an image's values."""
    steps = 1 / scale
    if np.all(steps == _OF_PROBABILITIES) and node.input_value(0).get_node().get_type_name() in _PROBABILITIES:
        return True
    return not np.allclose(steps, np.round(steps), rtol=_WHOLE, atol=0)
