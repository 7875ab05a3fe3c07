"""From what follows a layer to oneDNN's scales and post-operations, as the CPU plugin composes them.

oneDNN 3, of OpenVINO 2024.6 as of 2026.4, computes

    dst = store(post_operations(accumulator * weight_scale + bias) / dst_scale)

and the plugin maps one operation after the other:

    multiply    the last one of an int8 layer, per tensor              -> dst_scale = 1 / s
                int8 without bias, nothing appended yet                -> weight_scale * s
                int8 without bias, only a relu or prelu appended       -> weight_scale * s
                int8 without bias, only a sum appended, per tensor     -> weight_scale * s, sum_scale * s
                otherwise                                              -> eltwise_linear(s, 0) or binary_mul
    add         0 is skipped                                           -> eltwise_linear(1, b) or binary_add
    multiply and add of one FakeQuantize, both per tensor, b != 0      -> eltwise_linear(s, b)
    clip                                                               -> eltwise_clip or binary_max and _min
    FakeQuantize, with a clip or a per-channel multiply or add before  -> simplified first, then the above

Kernels that take no binary (int8 convolutions on CPUs without AVX-512) have post-operations of the plugin's own:

    multiply or add per channel that no scale takes                    -> depthwise_scale_shift
    prelu per channel                                                  -> depthwise_prelu, which lets no scale through
    FakeQuantize that would need a binary, as a whole                  -> quantization_quantize, or
                                                                          quantization_quantize_dequantize

The relu rule does not ask for the sign of s: `Attributes.hazards` says where that changes the result.
oneDNN 2 had an output scale on the accumulator with its bias and a scale on every eltwise: `LegacyComposer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ovlpt.fake_quantize.chain import (
    STORES,
    Add,
    Chain,
    Clip,
    Eltwise,
    Multiply,
    Operation,
    Relu,
    Round,
    Sum,
    decompose,
)
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.simplify import (
    Rule,
    clip_after_round,
    combined_scale,
    futile_clip,
    merge,
    nearly_per_tensor,
    per_tensor_values,
    shift_through_round,
    small_shift,
)
from ovlpt.fake_quantize.values import per_tensor, values
from ovlpt.trace import InputError, Reason, Rejected

Step = Operation | FakeQuantize
"""What may follow a layer: a basic operation, or a whole FakeQuantize."""

ALGORITHMS: dict[str, Any] = {
    "sigmoid": ("eltwise_logistic",),
    "tanh": ("eltwise_tanh",),
    "abs": ("eltwise_abs",),
    "elu": ("eltwise_elu",),
    "gelu_erf": ("eltwise_gelu_erf",),
    "swish": ("eltwise_swish",),
    "hswish": ("eltwise_hardswish", 1 / 6, 1 / 2),
    "hsigmoid": ("eltwise_hsigmoid",),
    "mish": ("eltwise_mish",),
    "softplus": ("eltwise_soft_relu", 1.0),
}
"""oneDNN's name of each elementwise function, and its parameters where they are not (alpha, 0)."""

_LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True, eq=False)
class PostOperation:
    """One entry of oneDNN's attr-post-ops: an eltwise with its parameters, a sum, or a binary with a vector.

    ``scale`` is the eltwise scale of oneDNN 2 and 1 otherwise; ``vector`` is the second operand of a binary;
    ``inside`` is what a post-operation of the plugin's own computes.
    """

    kind: str
    parameters: tuple[float, ...] = ()
    vector: np.ndarray | None = None
    mask: int = 0
    scale: float = 1.0
    inside: tuple[Operation, ...] = ()

    def operations(self) -> tuple[Operation, ...]:
        """What the entry computes, as basic operations."""
        if self.inside:
            return self.inside
        scaled = () if self.scale == 1 else (Multiply(self.scale),)
        match self.kind:
            case "eltwise_linear":
                return Multiply(self.parameters[0]), Add(self.parameters[1]), *scaled
            case "eltwise_relu":
                return Relu(self.parameters[0] if self.parameters else 0), *scaled
            case "eltwise_clip":
                return Clip(*self.parameters), *scaled
            case "eltwise_round_half_to_even":
                return Round(), *scaled
            case "binary_mul":
                return (Multiply(self.vector),)
            case "binary_add":
                return (Add(self.vector),)
            case "binary_prelu":
                return (Relu(self.vector),)
            case "binary_max":
                return (Clip(self.vector, _LARGEST),)
            case "binary_min":
                return (Clip(-_LARGEST, self.vector),)
            case "sum":
                return (Sum(self.parameters[0]),)
        function = next(name for name, (kind, *_) in ALGORITHMS.items() if kind == self.kind)
        alpha = self.parameters[0] if len(ALGORITHMS[function]) == 1 else 0.0
        return (Eltwise(function, alpha, self.scale),)

    def __str__(self) -> str:
        if self.vector is not None:
            return f"{self.kind}:f32:{self.mask}"
        parameters = list(self.parameters)
        if self.scale != 1:
            alpha, beta, *_ = *parameters, 0.0, 0.0
            parameters = [alpha, beta, self.scale]
        while parameters and parameters[-1] == 0:
            parameters.pop()
        return ":".join([self.kind, *(f"{parameter:g}" for parameter in parameters)])


@dataclass(frozen=True, eq=False)
class _Quantizer:
    """A FakeQuantize among the steps: all that it computes, and the same simplified."""

    whole: tuple[Operation, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, eq=False)
class Attributes:
    """oneDNN's attributes of one layer: what `Composer` returns.

    ``weight_scale`` is on the accumulator, before the bias (None: the layer is not int8); ``dst_scale``
    divides the result; ``output_scale`` is that of oneDNN 2, on accumulator plus bias. ``weight_mask`` is the
    mask of a per-channel weight scale. ``hazards`` name what the plugin's rules get wrong here.
    """

    post_operations: tuple[PostOperation, ...]
    weight_scale: np.ndarray | None = None
    dst_scale: float | np.floating = 1.0
    output_scale: np.ndarray | None = None
    store: str | None = None
    weight_mask: int = 1
    hazards: tuple[Reason, ...] = ()

    def chain(self, bias: ArrayLike | None = None) -> Chain:
        """What the attributes compute from the accumulator, to be run or compared with what was asked for."""
        operations: list[Operation] = []
        if self.weight_scale is not None:
            operations.append(Multiply(self.weight_scale))
        if bias is not None:
            operations.append(Add(bias))
        if self.output_scale is not None:
            operations.append(Multiply(self.output_scale))
        for post_operation in self.post_operations:
            operations.extend(post_operation.operations())
        if self.dst_scale != 1:
            operations.append(Multiply(1 / self.dst_scale))
        return Chain(operations, self.store)

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales that are set, as oneDNN's log names them: ``dst:0``, ``wei:mask``, ``out:mask``."""
        scales = ["dst:0"] if self.dst_scale != 1 else []
        for name, scale in (("wei", self.weight_scale), ("out", self.output_scale)):
            if scale is not None and (not per_tensor(scale) or scale[0] != 1):
                scales.append(f"{name}:{0 if per_tensor(scale) else self.weight_mask}")
        return tuple(scales)

    def __str__(self) -> str:
        parts = []
        if self.scales:
            parts.append("attr-scales:" + "+".join(self.scales))
        if self.post_operations:
            parts.append("attr-post-ops:" + "+".join(map(str, self.post_operations)))
        return " ".join(parts) or "no attributes"


class Composer:
    """The plugin's DnnlPostOpsComposer for oneDNN 3.

    ``int8``: the layer multiplies integers. ``bias``: it has one. ``dequantization``: the scale that the
    plugin has fused into the layer itself (a Multiply directly after an int8 layer). ``store``: "u8", "i8"
    or None (float). ``weight_mask`` and ``channel_mask`` are oneDNN's masks of a per-channel weight scale and
    of a binary: 1 and 2 for convolution, deconvolution (also with its bias fused) and inner product, 3 and 2
    for group convolution. A group convolution that is not depthwise has the plugin's own
    ``depthwise_scale_shift`` in place of a binary, which is not predicted.
    """

    def __init__(
        self,
        *,
        int8: bool,
        bias: bool = False,
        dequantization: ArrayLike | None = None,
        store: str | None = None,
        weight_mask: int = 1,
        channel_mask: int = 2,
        binaries: bool = True,
    ):
        if store not in (None, *STORES):
            raise InputError(f"store {store!r} is unknown; give 'u8', 'i8' or None")
        self.int8 = int8
        self.bias = bias
        self.store = store
        self.weight_mask = weight_mask
        self.channel_mask = channel_mask
        self.binaries = binaries
        self.layer_scale = values(1)
        self.dst_scale = np.float32(1)
        self.post_operations: list[PostOperation] = []
        self.hazards: list[Reason] = []
        if dequantization is not None:
            self._dequantize(values(dequantization))

    def compose(self, steps: Iterable[Step]) -> Attributes:
        """The attributes for these steps, in order, after the layer."""
        groups = self._groups(tuple(steps))
        for at, group in enumerate(groups, 1):
            last = at == len(groups)
            if isinstance(group, _Quantizer):
                self._quantize(group, last)
            else:
                self._append(group, last)
        return self._attributes()

    def _groups(self, steps: tuple[Step, ...]) -> list[Operation | _Quantizer]:
        """Basic operations one by one, and each FakeQuantize with what it absorbs of those before it.

        A multiply and an add of the model stay apart, even next to each other.
        """
        groups: list[Operation | _Quantizer] = []
        for at, step in enumerate(steps):
            if not isinstance(step, FakeQuantize):
                groups.append(step)
                continue
            before = _front(steps[:at])
            del groups[len(groups) - len(before) :]
            if before and isinstance(before[-1], Clip):
                self._note_clips_apart(before[-1], step)
            after = [type(later) for later in steps[at + 1 :]]
            residual = not groups and Sum in after and FakeQuantize in after
            whole = (*before, *decompose(step))
            groups.append(_Quantizer(whole, simplified(step, None if after else self.store, residual, before)))
        return groups

    def _quantize(self, quantizer: _Quantizer, last: bool) -> None:
        """Its operations one by one, a multiply and the add after it as one linear."""
        operations = list(quantizer.operations)
        if not self.binaries and self._needs_binary(operations):
            scale, shift = quantizer.whole[-2:]
            assert isinstance(scale, Multiply)
            assert isinstance(shift, Add)
            plain = np.all(scale.scale == 1) and np.all(shift.shift == 0)
            kind = "quantization_quantize" if plain else "quantization_quantize_dequantize"
            self.post_operations.append(PostOperation(kind, inside=quantizer.whole))
            return
        while operations:
            match operations:
                case [Multiply() as scaled, Add() as moved, *rest]:
                    self._linear(scaled.scale, moved.shift, last and not rest)
                case [single, *rest]:
                    self._append(single, last and not rest)
            operations = rest

    def _needs_binary(self, operations: Sequence[Operation]) -> bool:
        first, *rest = operations
        if isinstance(first, Multiply) and self.int8 and not self.bias and self._reaches_layer(first.scale):
            operations = rest
        return not all(operation.per_tensor for operation in operations)

    def _note_clips_apart(self, clip: Clip, parameters: FakeQuantize) -> None:
        if np.any(np.maximum(clip.low, parameters.input_low) > np.minimum(clip.high, parameters.input_high)):
            self.hazards.append(
                Reason(
                    "clip_apart_from_range",
                    f"{clip} is merged with the range of {parameters}, and they have no number in common",
                )
            )

    def _dequantize(self, scale: np.ndarray) -> None:
        if self.int8:
            self.layer_scale = scale
        else:
            self._multiply(scale, last=False)

    def _attributes(self) -> Attributes:
        return Attributes(
            tuple(self.post_operations),
            weight_scale=self.layer_scale if self.int8 else None,
            dst_scale=self.dst_scale,
            store=self.store,
            weight_mask=self.weight_mask,
            hazards=tuple(self.hazards),
        )

    def _append(self, operation: Operation, last: bool) -> None:
        match operation:
            case Multiply(scale):
                self._multiply(scale, last)
            case Add(shift):
                self._add(shift)
            case Clip(low, high):
                self._clip(low, high)
            case Round():
                self._eltwise("eltwise_round_half_to_even")
            case Relu(slope) if per_tensor(slope):
                self._eltwise("eltwise_relu", slope[0])
            case Relu(slope):
                self._binary("binary_prelu", slope)
            case Eltwise(function, alpha, scale):
                kind, *parameters = ALGORITHMS[function]
                self._eltwise(kind, *parameters or (alpha,))
                if np.any(scale != 1):
                    self._multiply(scale, last)
            case Sum(scale):
                self.post_operations.append(PostOperation("sum", (float(scale[0]),)))
            case _:
                raise InputError(f"{operation!r} is not a post-operation; give basic operations or a FakeQuantize")

    def _eltwise(self, kind: str, *parameters: float | np.floating) -> None:
        self.post_operations.append(PostOperation(kind, tuple(map(float, parameters))))

    def _binary(self, kind: str, vector: np.ndarray) -> None:
        binary = PostOperation(kind, vector=vector, mask=self.channel_mask)
        if not self.binaries:
            own = "depthwise_prelu" if kind == "binary_prelu" else "depthwise_scale_shift"
            binary = PostOperation(own, inside=binary.operations())
        self.post_operations.append(binary)

    def _multiply(self, scale: np.ndarray, last: bool) -> None:
        if self.int8 and last and per_tensor(scale):
            self.dst_scale = np.float32(1) / scale[0]
        elif self.int8 and not self.bias and self._reaches_layer(scale):
            self._into_layer_scale(scale)
        else:
            self._multiply_here(scale)

    def _multiply_here(self, scale: np.ndarray) -> None:
        if per_tensor(scale):
            self._eltwise("eltwise_linear", scale[0], 0)
        else:
            self._binary("binary_mul", scale)

    def _reaches_layer(self, scale: np.ndarray) -> bool:
        kinds = [post_operation.kind for post_operation in self.post_operations]
        return kinds in ([], ["eltwise_relu"], ["binary_prelu"]) or (kinds == ["sum"] and per_tensor(scale))

    def _into_layer_scale(self, scale: np.ndarray) -> None:
        self.layer_scale = self.layer_scale * scale
        match self.post_operations:
            case [PostOperation("sum", (summand_scale,))]:
                self.post_operations = [PostOperation("sum", (float(np.float32(summand_scale) * scale[0]),))]
            case [PostOperation(kind)] if np.any(scale < 0):
                lowest = f"{np.min(scale):g}"
                self.hazards.append(
                    Reason(
                        "negative_scale_after_relu",
                        f"the scale {lowest} after {kind} moves before it and flips the sign",
                    )
                )

    def _add(self, shift: np.ndarray) -> None:
        if not per_tensor(shift):
            self._binary("binary_add", shift)
        elif shift[0] != 0:
            self._eltwise("eltwise_linear", 1, shift[0])

    def _linear(self, scale: np.ndarray, shift: np.ndarray, last: bool) -> None:
        if not (per_tensor(scale) and per_tensor(shift)):
            self._multiply(scale, last=False)
            self._add(shift)
        elif shift[0] == 0:
            self._multiply(scale, last)
        else:
            self._eltwise("eltwise_linear", scale[0], shift[0])

    def _clip(self, low: np.ndarray, high: np.ndarray) -> None:
        if per_tensor(low) or per_tensor(high):
            self._eltwise(
                "eltwise_clip",
                low[0] if per_tensor(low) else -_LARGEST,
                high[0] if per_tensor(high) else _LARGEST,
            )
        if not per_tensor(low):
            self._binary("binary_max", low)
        if not per_tensor(high):
            self._binary("binary_min", high)


class LegacyComposer(Composer):
    """The composer for oneDNN 2: an output scale on accumulator plus bias, and a scale on every eltwise.

    multiply by 1           -> skipped
    int8, nothing appended  -> output_scale * s          (also through a relu or a sum that is the only one)
    per tensor, after an eltwise                        -> that eltwise's scale * s
    otherwise               -> eltwise_linear(s, 0), binary_mul per channel
    """

    def _dequantize(self, scale: np.ndarray) -> None:
        self._multiply(scale, last=False)

    def _attributes(self) -> Attributes:
        return Attributes(
            tuple(self.post_operations),
            output_scale=self.layer_scale if self.int8 else None,
            store=self.store,
            weight_mask=self.channel_mask,
            hazards=tuple(self.hazards),
        )

    def _multiply(self, scale: np.ndarray, last: bool) -> None:
        if np.all(scale == 1):
            return
        if self.int8 and self._reaches_layer(scale):
            self._into_layer_scale(scale)
        elif per_tensor(scale) and self.post_operations and self.post_operations[-1].kind.startswith("eltwise"):
            eltwise = self.post_operations[-1]
            self.post_operations[-1] = replace(eltwise, scale=float(np.float32(eltwise.scale) * scale[0]))
        else:
            self._multiply_here(scale)


def _front(steps: Sequence[Step]) -> list[Operation]:
    """The last of ``steps`` that become part of a FakeQuantize: a per-channel scaling, then a clip."""
    before: list[Operation] = []
    for kind in (Clip, Multiply | Add):
        last = steps[-1] if steps else None
        if isinstance(last, kind) and (kind is Clip or not last.per_tensor):
            before.insert(0, last)
            steps = steps[:-1]
    return before


def simplified(
    parameters: FakeQuantize,
    store: str | None = None,
    residual: bool = False,
    before: Sequence[Operation] = (),
) -> tuple[Operation, ...]:
    """The FakeQuantize as basic operations, simplified by those rules of `simplify` that the plugin has.

    ``store``: what the layer stores, if the FakeQuantize is its last operation. ``residual``: it is the first
    one, with a sum and another FakeQuantize after it, so its rounding is dropped. ``before``: a per-channel
    multiply or add, then a clip, that stand before the FakeQuantize and become part of it.
    """
    crop, *scaling = decompose(parameters)
    scale = [operation for operation in before if not isinstance(operation, Clip)]
    for clip in before[len(scale) :]:
        assert isinstance(clip, Clip)
        assert isinstance(crop, Clip)
        # the plugin does not ask whether the two have a number in common
        crop = Clip(np.maximum(clip.low, crop.low), np.minimum(clip.high, crop.high))
    chain = Chain((*scale, crop, *scaling))
    for rule in (clip_after_round, merge, merge, nearly_per_tensor):
        chain = _where_it_holds(rule, chain)
    if residual:
        after = Chain((*chain.operations, Sum(), Round()))
        chain = Chain(_where_it_holds(combined_scale, after).operations[:-2])
    while (shrunk := _where_it_holds(per_tensor_values, chain)) is not chain:
        chain = shrunk
    if chain.operations[-1].per_tensor:
        chain = _where_it_holds(shift_through_round, chain)
    chain = _where_it_holds(small_shift, chain)
    if parameters.levels == 256 and chain.operations[-1].per_tensor:
        chain = _where_it_holds(futile_clip, Chain(chain.operations, store))
    return chain.operations


def _where_it_holds(rule: Rule, chain: Chain) -> Chain:
    try:
        return rule(chain).after
    except Rejected:
        return chain


def predict(steps: Iterable[Step], **layer) -> Attributes:
    """oneDNN's attributes for ``steps`` after a layer; ``layer`` holds the arguments of `Composer`.

    Source: OpenVINO's CPU plugin, releases 2024.6 to 2026.4, compared with the log of oneDNN.
    """
    return Composer(**layer).compose(steps)
