"""The composer's rules one by one, and its predictions against oneDNN's log and the plugin's numbers."""

import numpy as np
import pytest

from ovlpt.fake_quantize.chain import Add, Chain, Clip, Eltwise, Multiply, Relu, Round, Sum
from ovlpt.fake_quantize.composer import Composer, LegacyComposer, predict
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.trace import InputError
from tools.post_ops import Logged, compare, random_layer, run

U8 = FakeQuantize(0, 25.5, 0, 255, 256)
SHIFTED = FakeQuantize(-10, 15.5, 0, 255, 256)
I8 = FakeQuantize(-12.8, 12.7, -128, 127, 256)
U4 = FakeQuantize(0, 15, 0, 7.5, 16)

INT8 = {"int8": True}
BIAS = {"int8": True, "bias": True, "dequantization": 0.5}
FLOAT = {"int8": False}
TODAY = [
    ([Multiply(3)], INT8, "attr-scales:dst:0"),
    ([Multiply([3, 4])], INT8, "attr-scales:wei:1"),
    ([Multiply(3), Relu()], INT8, "attr-scales:wei:0 attr-post-ops:eltwise_relu"),
    ([Multiply(3), Relu()], BIAS, "attr-scales:wei:0 attr-post-ops:eltwise_linear:3+eltwise_relu"),
    ([Multiply([3, 4]), Relu()], FLOAT, "attr-post-ops:binary_mul:f32:2+eltwise_relu"),
    ([Relu(), Multiply([3, 4])], INT8, "attr-scales:wei:1 attr-post-ops:eltwise_relu"),
    ([Relu([1, 2]), Multiply([3, 4])], INT8, "attr-scales:wei:1 attr-post-ops:binary_prelu:f32:2"),
    ([Relu(), Multiply(3), Relu()], BIAS,
     "attr-scales:wei:0 attr-post-ops:eltwise_relu+eltwise_linear:3+eltwise_relu"),
    ([Eltwise("tanh"), Multiply(3)], INT8, "attr-scales:dst:0 attr-post-ops:eltwise_tanh"),
    ([Eltwise("tanh"), Multiply(3)], FLOAT, "attr-post-ops:eltwise_tanh+eltwise_linear:3"),
    ([Sum(), Multiply(0.5), Relu()], INT8, "attr-scales:wei:0 attr-post-ops:sum:0.5+eltwise_relu"),
    ([Sum(), Multiply([3, 4])], INT8, "attr-post-ops:sum:1+binary_mul:f32:2"),
    ([Add(0), Relu()], INT8, "attr-post-ops:eltwise_relu"),
    ([Add(3)], INT8, "attr-post-ops:eltwise_linear:1:3"),
    ([Add([3, 4])], INT8, "attr-post-ops:binary_add:f32:2"),
    ([Clip(0, 6)], FLOAT, "attr-post-ops:eltwise_clip:0:6"),
    ([Clip([0, 1], [6, 7])], FLOAT, "attr-post-ops:binary_max:f32:2+binary_min:f32:2"),
    ([Clip(0, [6, 7])], FLOAT, "attr-post-ops:eltwise_clip:0:3.40282e+38+binary_min:f32:2"),
    ([Clip([0, 1], 6)], FLOAT, "attr-post-ops:eltwise_clip:-3.40282e+38:6+binary_max:f32:2"),
    ([U8], INT8 | {"store": "u8"}, "attr-scales:dst:0"),
    ([U8], BIAS | {"store": "u8"}, "attr-scales:dst:0+wei:0"),
    ([SHIFTED], INT8 | {"store": "u8"}, "attr-post-ops:eltwise_linear:10:100"),
    ([I8], INT8 | {"store": "i8"}, "attr-scales:dst:0"),
    ([U8], INT8, "attr-scales:wei:0 attr-post-ops:eltwise_round_half_to_even+eltwise_clip:0:255"),
    ([U4], INT8, "attr-scales:dst:0 attr-post-ops:eltwise_round_half_to_even+eltwise_clip:0:15"),
    ([Clip(0, 6), U8], FLOAT, "attr-post-ops:eltwise_linear:10+eltwise_round_half_to_even+eltwise_clip:0:60"),
    ([U8, Sum(), SHIFTED], INT8,
     "attr-scales:wei:0 attr-post-ops:eltwise_clip:0:255+sum:1"
     "+eltwise_linear:10:100+eltwise_round_half_to_even+eltwise_clip:0:255"),
    ([], INT8, "no attributes"),
]  # fmt: skip

LEGACY = [
    ([Multiply(1), Add(0), Relu()], INT8, "attr-post-ops:eltwise_relu"),
    ([Multiply([3, 4])], INT8, "attr-scales:out:2"),
    ([Multiply([3, 4]), Multiply(2)], INT8, "attr-scales:out:2"),
    ([Multiply(3)], INT8 | {"bias": True}, "attr-scales:out:0"),
    ([Relu(), Multiply(3)], INT8, "attr-scales:out:0 attr-post-ops:eltwise_relu"),
    ([Sum(), Multiply(0.5)], INT8, "attr-scales:out:0 attr-post-ops:sum:0.5"),
    ([Eltwise("tanh"), Multiply(3)], INT8, "attr-post-ops:eltwise_tanh:0:0:3"),
    ([Eltwise("tanh"), Multiply([3, 4])], INT8, "attr-post-ops:eltwise_tanh+binary_mul:f32:2"),
    ([Multiply(3), Multiply(2)], FLOAT, "attr-post-ops:eltwise_linear:3:0:2"),
    ([U8], INT8 | {"store": "u8"}, "attr-scales:out:0"),
    ([Multiply([3, 4]), Add(5)], INT8, "attr-scales:out:2 attr-post-ops:eltwise_linear:1:5"),
]


@pytest.mark.parametrize("steps, layer, expected", TODAY)
def test_composer(steps, layer, expected):
    assert str(predict(steps, **layer)) == expected


@pytest.mark.parametrize("steps, layer, expected", LEGACY)
def test_legacy_composer(steps, layer, expected):
    assert str(LegacyComposer(**layer).compose(steps)) == expected


@pytest.mark.parametrize("composer", [Composer, LegacyComposer])
@pytest.mark.parametrize("steps, layer", [case[:2] for case in TODAY + LEGACY])
def test_attributes_compute_what_was_asked_for(composer, steps, layer):
    """The attributes' chain, run, against the steps run one by one."""
    bias = [0.5, -1.0] if "bias" in layer else None
    attributes = composer(**layer).compose(steps)
    x, summand = np.random.default_rng(0).uniform(-30, 30, (2, 2000, 2)).astype(np.float32)
    dequantization = layer.get("dequantization", 1)
    asked = (x * np.float32(dequantization) if composer is Composer else x) + np.float32(bias or 0)
    asked = asked if composer is Composer else asked * np.float32(dequantization)
    for step in steps:
        asked = step(asked) if isinstance(step, FakeQuantize) else step(asked, summand)
    asked = Chain([], layer.get("store")).run(asked)
    composed = attributes.chain(bias).run(x, summand)
    residual = steps[:1] == [U8] and len(steps) == 3
    assert np.mean(np.abs(composed - asked) > 1e-4 * np.maximum(1, np.abs(asked))) < (1 if residual else 2e-3)
    # without its first rounding the residual chain may lie half a step of 0.1 off, before a scale of 10
    assert np.max(np.abs(composed - asked)) <= (6 if residual else 1)


def test_negative_scale_through_relu_is_flagged_where_it_changes_the_result():
    x = np.random.default_rng(0).uniform(-3, 3, (100, 2)).astype(np.float32)
    steps = [Relu(), Multiply([1, -1])]
    attributes = predict(steps, int8=True)
    assert [hazard.code for hazard in attributes.hazards] == ["negative_scale_after_relu"]
    assert np.any(attributes.chain().run(x) != Chain(steps).run(x))
    assert not predict(steps, int8=True, bias=True).hazards
    assert not predict([Relu(), Multiply(-1)], int8=True).hazards


def test_weight_and_channel_masks():
    attributes = predict([Multiply([1, 2]), Add([1, 2])], int8=True, weight_mask=3, channel_mask=4)
    assert str(attributes) == "attr-scales:wei:3 attr-post-ops:binary_add:f32:4"


def test_a_negative_shift_left_by_float_noise_is_per_tensor():
    quantizer = FakeQuantize([-10, -10.000001], [15.5, 15.500001], 0, 255, 256)
    assert str(predict([quantizer], int8=False, store=None)).startswith(
        "attr-post-ops:binary_mul:f32:2+eltwise_linear:1:100+eltwise_round_half_to_even+eltwise_clip:0:255"
    )


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Composer(int8=True, store="f16"), "store 'f16' is unknown"),
        (lambda: predict(["relu"], int8=True), "'relu' is not a post-operation"),
    ],
)
def test_unusable_input(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_predictions_equal_the_log_of_onednn():
    """20 random layers; `python -m tools.post_ops predict` compares 500."""
    wrong = [
        f"{layer}\n    predicted {predicted}\n    created   {created}"
        for layer, predicted, created, agrees in compare(20, seed=100)
        if not agrees
    ]
    assert not wrong, "\n".join(wrong)


def test_predictions_compute_what_the_plugin_computes():
    layers = 0
    for number in range(40):
        rng = np.random.default_rng((101, number))
        layer = random_layer(rng)
        if layer.consumer or any(isinstance(step, Sum) for step in layer.tail):
            continue
        layers += 1
        actual, predicted = run(layer, rng)
        off = np.abs(actual - predicted) > 1e-4 * np.maximum(1, np.abs(predicted))
        assert np.mean(off) < 1e-3, f"{layer}: {off.sum()} of {off.size} differ"
    assert layers > 20


@pytest.mark.parametrize(
    "line",
    [
        "attr-scales:wei:1 attr-post-ops:eltwise_relu",
        "attr-scales:dst:0 attr-post-ops:eltwise_relu",
        "attr-scales:wei:0 attr-post-ops:eltwise_tanh",
        "attr-scales:wei:0 attr-post-ops:eltwise_relu+eltwise_relu",
        "attr-scales:wei:0",
        "no attributes",
    ],
)
def test_the_comparison_sees_differences(line):
    expected = Logged.parse("x,attr-scratchpad:user attr-scales:wei:0:f32:1:: attr-post-ops:eltwise_relu,y")
    assert expected.agrees(Logged.parse("attr-scales:wei:0 attr-post-ops:eltwise_relu"))
    assert not expected.agrees(Logged.parse(line))


@pytest.mark.parametrize(
    "line, agrees",
    [
        ("attr-post-ops:eltwise_linear:1.00001e+06:2+binary_mul:f32:2:a", True),
        ("attr-post-ops:eltwise_linear:1.001e+06:2+binary_mul:f32:2", False),
        ("attr-post-ops:eltwise_linear:1e+06:2+binary_mul:f32:4", False),
        ("attr-post-ops:eltwise_linear:1e+06+binary_mul:f32:2", False),
    ],
)
def test_the_comparison_reads_numbers_and_masks(line, agrees):
    expected = Logged.parse("attr-post-ops:eltwise_linear:1e+06:2+binary_mul:f32:2")
    assert expected.agrees(Logged.parse(line)) is agrees


def test_round_alone():
    assert str(predict([Round()], int8=False)) == "attr-post-ops:eltwise_round_half_to_even"
