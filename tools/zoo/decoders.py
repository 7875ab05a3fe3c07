"""Language models from a configuration: decoders whose keys and values are states, as optimum-intel exports them.

Inputs: ``input_ids`` and ``position_ids`` i64 [batch, new], ``attention_mask`` i64 [batch, past + new] and ``beam_idx``
i32 [batch], all sizes open. Output: ``logits`` f32 [batch, new, vocabulary]. For each layer two variables
[batch, heads, past, size of a head], which begin empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov

from ovlpt.openvino_api import Model, Node, NodeFactory, Output, opset1, opset6, opset8, opset13
from tools.ir import save_ir
from tools.zoo.alive import CALIBRATION, Sample
from tools.zoo.overflow_fix import save_quantized

Value = Node | Output

_EPSILON = 1e-5
_MASKED = -1e4


@dataclass(frozen=True)
class Decoder:
    """``key_heads``: fewer than ``heads`` are shared by groups of queries. ``rotary``: as Llama is built (rotated
    positions, RMS normalization, a gated block without biases), else as GPT-2.
    """

    layers: int = 4
    width: int = 256
    heads: int = 8
    key_heads: int = 8
    vocabulary: int = 2000
    positions: int = 256
    rotary: bool = False

    @property
    def head(self) -> int:
        return self.width // self.heads


GPT2 = Decoder()
LLAMA = Decoder(key_heads=2, rotary=True)


def decoder(shape: Decoder, quantized: bool = False, seed: int = 0) -> Model:
    """The model; the same weights for a seed. ``quantized``: its linear layers in 8 bits over intervals that suit them,
    weights within half of their range. NNCF does better, and is not needed for this.
    """
    return _Writer(shape, quantized, seed).model()


class _Writer:
    """Writes the operations of one model."""

    def __init__(self, shape: Decoder, quantized: bool, seed: int):
        self.shape, self.quantized = shape, quantized
        self._random = np.random.default_rng(seed)
        self._sinks: list[Node] = []
        self.inputs = {
            name: _parameter(name, kind, rank)
            for name, kind, rank in (
                ("input_ids", np.int64, 2),
                ("attention_mask", np.int64, 2),
                ("position_ids", np.int64, 2),
                ("beam_idx", np.int32, 1),
            )
        }
        self.batch = opset8.gather(opset1.shape_of(self.inputs["input_ids"]), _ints([0]), _ints(0))

    def model(self) -> Model:
        hidden = self._embedding()
        mask = self._mask()
        for layer in range(self.shape.layers):
            hidden = self._block(hidden, mask, f"layers.{layer}")
        logits = self._linear(self._normalized(hidden), self.shape.vocabulary, "head", bias=False)
        logits.set_friendly_name("logits")
        result = opset1.result(logits)
        result.output(0).get_tensor().set_names({"logits"})
        return Model([result], self._sinks, list(self.inputs.values()), "llama" if self.shape.rotary else "gpt2")

    def _embedding(self) -> Node:
        tokens = opset8.gather(
            self._weights((self.shape.vocabulary, self.shape.width)), self.inputs["input_ids"], _ints(0)
        )
        if self.shape.rotary:
            return tokens
        places = self._weights((self.shape.positions, self.shape.width), 0.3)
        return opset1.add(tokens, opset8.gather(places, self.inputs["position_ids"], _ints(0)))

    def _block(self, hidden: Node, mask: Node, name: str) -> Node:
        hidden = opset1.add(hidden, self._attention(self._normalized(hidden), mask, f"{name}.attention"))
        return opset1.add(hidden, self._feed_forward(self._normalized(hidden), f"{name}.mlp"))

    def _attention(self, hidden: Node, mask: Node, name: str) -> Node:
        shape = self.shape
        query = self._heads(self._linear(hidden, shape.width, f"{name}.query"), shape.heads)
        key, value = (
            self._heads(self._linear(hidden, shape.key_heads * shape.head, f"{name}.{each}"), shape.key_heads)
            for each in ("key", "value")
        )
        if shape.rotary:
            query, key = self._rotated(query), self._rotated(key)
        key, value = self._remembered(key, f"{name}.key"), self._remembered(value, f"{name}.value")
        attended = opset13.scaled_dot_product_attention(query, key, value, mask)
        attended.set_friendly_name(f"{name}.sdpa")
        merged = opset1.transpose(attended, _ints([0, 2, 1, 3]))
        return self._linear(opset1.reshape(merged, _ints([0, 0, shape.width]), True), shape.width, f"{name}.output")

    def _remembered(self, new: Node, name: str) -> Value:
        """All keys or values so far, for as many heads as the queries have."""
        heads, size = self.shape.key_heads, self.shape.head
        start = opset1.broadcast(
            _floats(0.0), opset1.concat([self.batch, _ints([heads]), _ints([0]), _ints([size])], 0)
        )
        variable = f"past.{name}.present.{name}"
        read = opset6.read_value(start, variable, np.float32, ov.PartialShape([-1, heads, -1, size]))
        past = opset8.gather(read, self.inputs["beam_idx"], _ints(0))
        whole = opset1.concat([past, new], 2)
        self._sinks.append(opset6.assign(whole, variable))
        return whole if self.shape.key_heads == self.shape.heads else self._repeated(whole)

    def _repeated(self, values: Value) -> Node:
        """Each head as often as queries share it."""
        shape, groups = self.shape, self.shape.heads // self.shape.key_heads
        each = opset1.unsqueeze(values, _ints(2))
        target = opset1.concat([self.batch, _ints([shape.key_heads, groups]), _ints([1]), _ints([shape.head])], 0)
        spread = NodeFactory("opset3").create(
            "Broadcast", [each.output(0), target.output(0)], {"mode": "bidirectional"}
        )
        return opset1.reshape(spread, _ints([0, shape.heads, -1, shape.head]), True)

    def _heads(self, values: Node, heads: int) -> Node:
        return opset1.transpose(opset1.reshape(values, _ints([0, 0, heads, -1]), True), _ints([0, 2, 1, 3]))

    def _rotated(self, values: Node) -> Node:
        """Halves of each head turned by an angle that grows with the position."""
        half = self.shape.head // 2
        pace = (10000.0 ** (-np.arange(half) / half)).astype(np.float32)
        places = opset1.unsqueeze(opset1.convert(self.inputs["position_ids"], "f32"), _ints([1, 3]))
        angles = opset1.multiply(places, _floats(np.tile(pace, 2).reshape(1, 1, 1, -1)))
        left, right = opset1.split(values, _ints(3), 2).outputs()
        turned = opset1.concat([opset1.multiply(right, _floats(-1.0)).output(0), left], 3)
        return opset1.add(opset1.multiply(values, opset1.cos(angles)), opset1.multiply(turned, opset1.sin(angles)))

    def _mask(self) -> Node:
        """Added to the scores, [batch, 1, new, past + new]: a position sees those before it that are not masked."""
        mask = self.inputs["attention_mask"]
        whole = opset8.gather(opset1.shape_of(mask), _ints(1), _ints(0))
        columns = NodeFactory("opset4").create(
            "Range", [_ints(0).output(0), whole.output(0), _ints(1).output(0)], {"output_type": "i64"}
        )
        new = opset8.gather(opset1.shape_of(self.inputs["input_ids"]), _ints(1), _ints(0))
        rows = NodeFactory("opset4").create(
            "Range",
            [opset1.subtract(whole, new).output(0), whole.output(0), _ints(1).output(0)],
            {"output_type": "i64"},
        )
        later = opset1.greater(opset1.unsqueeze(columns, _ints(0)), opset1.unsqueeze(rows, _ints(1)))
        hidden = opset1.equal(opset1.unsqueeze(mask, _ints([1, 2])), _ints(0))
        unseen = opset1.logical_or(opset1.unsqueeze(later, _ints([0, 1])), hidden)
        return opset1.select(unseen, _floats(_MASKED), _floats(0.0))

    def _normalized(self, hidden: Node) -> Node:
        width = self.shape.width
        weight = _floats(self._random.uniform(0.5, 1.5, (1, 1, width)))
        if self.shape.rotary:
            square = opset1.power(hidden, _floats(2.0))
            root = opset1.sqrt(opset1.add(opset1.reduce_mean(square, _ints([-1]), True), _floats(_EPSILON)))
            return opset1.multiply(opset1.divide(hidden, root), weight)
        node = opset6.mvn(hidden, _ints([-1]), True, _EPSILON, "inside_sqrt")
        shift = _floats(self._random.uniform(-0.2, 0.2, (1, 1, width)))
        return opset1.add(opset1.multiply(node, weight), shift)

    def _feed_forward(self, hidden: Node, name: str) -> Node:
        wide = 4 * self.shape.width
        if not self.shape.rotary:
            inner = NodeFactory("opset7").create("Gelu", [self._linear(hidden, wide, f"{name}.in").output(0)], {})
            return self._linear(inner, self.shape.width, f"{name}.out")
        gate = NodeFactory("opset4").create("Swish", [self._linear(hidden, wide // 2, f"{name}.gate").output(0)], {})
        inner = opset1.multiply(gate, self._linear(hidden, wide // 2, f"{name}.up"))
        return self._linear(inner, self.shape.width, f"{name}.down")

    def _linear(self, data: Node, outputs: int, name: str, bias: bool = True) -> Node:
        inputs = data.output(0).get_partial_shape()[-1].get_length()
        weights = self._weights((outputs, inputs), inputs**-0.5)
        if self.quantized:
            data = _fake_quantized(data, -5.0, 5.0 * 127 / 128, 256)
            ends = 2 * np.abs(weights.data).max(1, keepdims=True)
            weights = _fake_quantized(weights, -ends, ends, 255)
        node = opset1.matmul(data, weights, False, True)
        node.set_friendly_name(name)
        if self.shape.rotary or not bias:
            return node
        return opset1.add(node, _floats(self._random.uniform(-0.1, 0.1, (1, 1, outputs))))

    def _weights(self, shape: tuple[int, ...], deviation: float = 1.0) -> Node:
        return _floats(self._random.standard_normal(shape) * deviation)


def _parameter(name: str, kind: type, rank: int) -> Node:
    node = opset1.parameter(ov.PartialShape([-1] * rank), kind)
    node.set_friendly_name(name)
    node.output(0).get_tensor().set_names({name})
    return node


def _fake_quantized(data: Value, low: float | np.ndarray, high: float | np.ndarray, levels: int) -> Node:
    return opset1.fake_quantize(data, _floats(low), _floats(high), _floats(low), _floats(high), levels)


def _ints(value: int | list[int]) -> Node:
    return opset1.constant(np.asarray(value, np.int64))


def _floats(value: float | np.ndarray) -> Node:
    return opset1.constant(np.asarray(value, np.float32))


def steps(shape: Decoder, lengths: list[int], seed: int = 0, batch: int = 1) -> list[Sample]:
    """Inputs of one sequence, ``lengths`` new random tokens at each step."""
    generator, past, found = np.random.default_rng(seed), 0, []
    for length in lengths:
        found.append(
            {
                "input_ids": generator.integers(0, shape.vocabulary, (batch, length)),
                "attention_mask": np.ones((batch, past + length), np.int64),
                "position_ids": np.tile(np.arange(past, past + length), (batch, 1)),
                "beam_idx": np.arange(batch, dtype=np.int32),
            }
        )
        past += length
    return found


# The zoo's


_PROMPT = 24
DECODERS: dict[str, tuple[str, Decoder]] = {
    name: (summary, shape)
    for family, title, shape in (("gpt2", "GPT-2-like", GPT2), ("llama", "Llama-like", LLAMA))
    for name, summary in (
        (f"{family}_decoder", f"{title} decoder with a cache in states; NNCF quantizes keys and queries, too."),
        (f"{family}_decoder_whole", f"{title} decoder, its attention not quantized: the plugin keeps it whole."),
        (f"{family}_decoder_cache8", f"{title} decoder whose states pass a FakeQuantize."),
        (f"{family}_decoder_f8", f"{title} decoder in f8 (FakeConvert)."),
    )
}


def build(name: str, folder: Path, overflow_fix: bool = False) -> str:
    """Write ``folder/name.xml``, quantized by NNCF with SmoothQuant, and ``folder/name_float.xml``; return a line about them."""
    import nncf

    nncf.set_log_level("ERROR")
    shape = DECODERS[name][1]
    model = decoder(shape)
    samples = [steps(shape, [_PROMPT], seed)[0] for seed in range(CALIBRATION)]
    quantized = nncf.quantize(
        model.clone(),
        nncf.Dataset(samples),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=CALIBRATION,
        advanced_parameters=nncf.AdvancedQuantizationParameters(
            overflow_fix=nncf.OverflowFix.ENABLE if overflow_fix and not name.endswith("_f8") else None,
            disable_bias_correction=True,
        ),
        **_settings(name),
    )
    if name.endswith("_cache8"):
        quantize_cache(quantized)
    count = sum(node.get_type_name() in ("FakeQuantize", "FakeConvert") for node in quantized.get_ops())
    save_ir(model, folder / f"{name}_float.xml")
    save_quantized(quantized, folder / f"{name}.xml", overflow_fix)
    return f"{name}: {count} FakeQuantize or FakeConvert, {2 * shape.layers} states"


def _settings(name: str) -> dict[str, object]:
    import nncf

    if name.endswith("_f8"):
        return {"mode": nncf.QuantizationMode.FP8_E4M3}
    ignored = (
        {} if name.endswith("_decoder") else {"ignored_scope": nncf.IgnoredScope(types=["ScaledDotProductAttention"])}
    )
    return {"preset": nncf.QuantizationPreset.MIXED, **ignored}


def quantize_cache(model: Model, high: float = 5.0) -> None:
    """Put a FakeQuantize of 8 bits over what the variables store and the attention reads."""
    for sink in model.get_sinks():
        whole = sink.input_value(0)
        targets = list(whole.get_target_inputs())
        quantized = _fake_quantized(whole.get_node(), -high, high * 127 / 128, 256)
        for target in targets:
            target.replace_source_output(quantized.output(0))
