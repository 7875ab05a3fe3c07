"""Operations without a rule, and why."""

from __future__ import annotations

from ovlpt.operations.row import Operation
from ovlpt.trace import Reason


def _absent(text: str, names: str, copies: bool = False) -> tuple[Operation, ...]:
    """Rows for names like "Gelu-2,7": the operation and its opset versions (none: 1)."""
    rows = []
    for name, _, versions in (each.partition("-") for each in names.split()):
        opsets = tuple(f"opset{version}" for version in (versions or "1").split(","))
        rows.append(Operation(name, "absent", opsets, why_absent=Reason("no_rule", text.format(name)), copies=copies))
    return tuple(rows)


_MOVES_DATA = "it moves data, but there is no rule: the native library has none either"
_NONLINEAR = "{} is not linear, so a scale cannot pass it"


ABSENT = (
    *_absent(
        _NONLINEAR,
        "Acos Acosh-4 Asin Asinh-4 Atan Atanh-4 Cos Cosh Elu Erf Exp Gelu-2,7 HardSigmoid HSigmoid-5 HSwish-4 Log LogSoftmax-5 "
        "Mish-4 Power ReduceProd Selu Sigmoid Sin Sinh Softmax-1,8 SoftPlus-4 SoftSign-9 Sqrt Swish-4 Tan Tanh",
    ),
    *_absent(
        "a quotient has no scale that its inputs share; a division by a constant becomes a Multiply before", "Divide"
    ),
    *_absent(
        "{} compares two inputs, whose scales differ",
        "Equal Greater GreaterEqual Less LessEqual NotEqual",
    ),
    *_absent("{} squares the data, and there is no rule for its scale", "ReduceL2-4"),
    *_absent("{} squares differences, and no rule separates the scale", "SquaredDifference"),
    *_absent("subtracting a zero point has a rule, a difference of two tensors has none", "Subtract"),
    *_absent("{} divides by values of the data, and no rule separates the scale", "GRN LRN"),
    *_absent(
        "{} is turned into an MVN, which has a rule, unless the device has a kernel for it, as GPUs do",
        "GroupNormalization-12",
    ),
    *_absent("{} is fused into a layer with weights before it, and this one follows none", "BatchNormInference-1,5"),
    *_absent(
        "{} computes between values, and there is no rule for its weights",
        "GridSample-9 ROIAlign-3,9 ROIPooling PSROIPooling",
    ),
    *_absent(
        "the native library has no rule for {} either, so plugins run it in float",
        "CumSum-3 DeformableConvolution-1,8 BinaryConvolution",
    ),
    *_absent(
        "{} is decomposed into MatMul, which has rules, unless it has more than two operands or takes a diagonal",
        "Einsum-7",
    ),
    *_absent(
        "{} is decomposed into MatMul and Softmax, which have rules, unless the plugin fuses it whole, in float",
        "ScaledDotProductAttention-13",
    ),
    *_absent(
        "there is a rule for sequences (LSTMSequence, GRUSequence), none for {}",
        "LSTMCell-1,4 RNNSequence-5",
    ),
    *_absent(
        "there is no rule for {}, which a GPU decomposes into MatMul, which has rules, and a CPU runs whole",
        "GRUCell-3 RNNCell",
    ),
    *_absent("its windows are of several sizes, and there is no rule", "AdaptiveAvgPool-8 AdaptiveMaxPool-8"),
    *_absent(
        _MOVES_DATA,
        "ExtractImagePatches-3 ScatterElementsUpdate-3,12 ScatterNDUpdate-3,15 ScatterUpdate-3",
    ),
    *_absent("it sums rows of its data, and there is no rule", "EmbeddingBagOffsetsSum-3"),
    *_absent(
        _MOVES_DATA,
        "GatherND-5,8 Reverse ReverseSequence SpaceToDepth",
        copies=True,
    ),
    *_absent(
        "it sorts or selects, and indices come with its values: there is no rule",
        "NonMaxSuppression-1,3,4,5,9 TopK-1,3,11",
    ),
    *_absent("the sign or the magnitude alone has no rule", "Abs Negative Sign"),
    *_absent("it rounds real values, which a scale changes", "Ceiling Floor FloorMod Mod Round-5"),
)
