"""Each rule on its identity, each refusal, and all of them on random chains."""

import numpy as np
import pytest

from ovlpt.fake_quantize import simplify as rules
from ovlpt.fake_quantize.chain import Add, Chain, Clip, Eltwise, Multiply, Relu, Round, Sum, decompose
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.simplify import Exactness, simplify
from ovlpt.trace import Rejected
from tests.fake_quantize.random_chains import random_chain, rewrites, wrong

FLOAT32, REALS, APPROXIMATE = Exactness

APPLIES = [
    (rules.clip_after_round, [Clip(-1, 2), Multiply(10), Add(3), Round()], None,
     "multiply(10) · add(3) · round · clip(-7, 23)", FLOAT32),
    (rules.clip_after_round, [Clip(-1, 2), Multiply([1, -10]), Round()], None,
     "multiply([1 … -10]) · round · clip([-1 … -20], [2 … 10])", FLOAT32),
    (rules.clip_after_round, [Clip(-1.5, 2.5), Round()], None, "round · clip(-2, 2)", FLOAT32),
    (rules.per_tensor_values, [Clip([0, 0], [255, 255])], None, "clip(0, 255)", FLOAT32),
    (rules.per_tensor_values, [Clip([0, 0], [255, 15])], None, "clip(0, [255 … 15])", FLOAT32),
    (rules.nearly_per_tensor, [Add([100, 100.00002]), Round()], None, "add(100) · round", APPROXIMATE),
    (rules.shift_through_round, [Round(), Clip(0, 255), Add(-128)], None,
     "add(-128) · round · clip(-128, 127)", REALS),
    (rules.shift_through_round, [Add(0.5), Round(), Multiply(1), Add([2, 4])], None,
     "add([2.5 … 4.5]) · round", REALS),
    (rules.shift_through_round, [Round(), Add(127)], None, "add(127) · round", APPROXIMATE),
    (rules.futile_clip, [Add(1), Round(), Clip(0, 255)], "u8", "add(1) · store u8", FLOAT32),
    (rules.futile_clip, [Clip(-200, 127)], "i8", "store i8", FLOAT32),
    (rules.futile_clip, [Round()], "i8", "store i8", FLOAT32),
    (rules.combined_scale,
     [Multiply(10), Add(3), Round(), Clip(0, 255), Multiply(0.5), Add(-1), Sum(), Round()], None,
     "multiply(5) · add(0.5) · clip(-1, 126.5) · sum(1) · round", APPROXIMATE),
    (rules.combined_scale, [Round(), Multiply(-0.5), Sum()], "u8",
     "multiply(-0.5) · add(0) · sum(1) · store u8",
     APPROXIMATE),
    (rules.small_shift, [Add(1e-4), Round(), Clip(0, 255)], None, "round · clip(0, 255)", APPROXIMATE),
    (rules.merge, [Multiply(2), Multiply(3)], None, "multiply(6)", REALS),
    (rules.merge, [Add(2), Add(3)], None, "add(5)", REALS),
    (rules.merge, [Add(2), Multiply([3, 4])], None, "multiply([3 … 4]) · add([6 … 8])", REALS),
    (rules.merge_clips, [Clip(-1, 5), Clip(0, 9)], None, "clip(0, 5)", FLOAT32),
    (rules.multiply_before_relu, [Relu(), Multiply(3)], None, "multiply(3) · relu", FLOAT32),
    (rules.multiply_before_relu, [Relu([0.1, 0.2]), Multiply(3)], None,
     "multiply(3) · prelu([0.1 … 0.2])", REALS),
    (rules.multiply_before_sum, [Sum(2), Multiply(3)], None, "multiply(3) · sum(6)", REALS),
    (rules.identity, [Round(), Multiply(1)], None, "round", FLOAT32),
    (rules.identity, [Add([0, 0]), Round()], None, "round", FLOAT32),
    (rules.multiply_into_eltwise, [Eltwise("tanh"), Multiply(3)], None, "tanh(x) * 3", REALS),
]  # fmt: skip


@pytest.mark.parametrize("rule, operations, store, after, exactness", APPLIES)
def test_rules(rule, operations, store, after, exactness):
    rewrite = rule(Chain(operations, store))
    assert str(rewrite.after) == after
    assert rewrite.exactness is exactness
    assert (np.max(rewrite.bound) > 0) == (exactness is APPROXIMATE)
    assert wrong(rewrite, np.random.default_rng(0), 2) is None


@pytest.mark.parametrize(
    "rule, operations, store, code",
    [
        (rules.clip_after_round, [Clip(0, 1), Multiply(0), Round()], None, "zero_scale"),
        (rules.clip_after_round, [Clip(-3e38, 3e38), Multiply(1e38), Round()], None, "overflow"),
        (rules.clip_after_round, [Clip(0, 1), Relu(), Round()], None, "absent"),
        (rules.per_tensor_values, [Multiply([1, 2])], None, "differs_between_channels"),
        (rules.per_tensor_values, [Multiply(1)], None, "absent"),
        (rules.nearly_per_tensor, [Add([1, 1.001]), Round()], None, "differs_between_channels"),
        (rules.shift_through_round, [Round(), Add(0.5)], None, "shift_not_integer"),
        (rules.shift_through_round, [Round(), Multiply(2), Add(2)], None, "output_scale_not_one"),
        (rules.futile_clip, [Round(), Clip(0, 15)], "u8", "clip_narrower"),
        (rules.futile_clip, [Round(), Clip(0, 255)], None, "no_store"),
        (rules.futile_clip, [Round(), Clip(0, 255), Multiply(2)], "u8", "not_last"),
        (rules.futile_clip, [Clip(-300, 300), Clip(0, 15)], "u8", "not_last"),
        (rules.combined_scale, [Round(), Sum()], None, "no_second_round"),
        (rules.small_shift, [Add(0.1), Clip(0, 255)], None, "shift_not_small"),
        (rules.small_shift, [Add([0, 1e-9]), Clip(0, 255)], None, "per_channel"),
        (rules.merge, [Multiply(2), Add(2)], None, "absent"),
        (rules.merge_clips, [Clip(0, 1), Clip(2, 3)], None, "intervals_apart"),
        (rules.multiply_before_relu, [Relu(), Multiply([1, -1])], None, "negative_scale"),
        (rules.multiply_before_sum, [Sum(), Multiply([1, 2])], None, "per_channel"),
        (rules.multiply_into_eltwise, [Eltwise("tanh"), Multiply([1, 2])], None, "per_channel"),
        (rules.identity, [Multiply(2)], None, "absent"),
    ],
)
def test_refusals(rule, operations, store, code):
    with pytest.raises(Rejected) as rejected:
        rule(Chain(operations, store))
    assert rejected.value.reason.code == code


def test_a_refused_place_does_not_hide_a_later_one():
    chain = Chain([Relu(), Multiply(-1), Relu(), Multiply(2)])
    assert str(rules.multiply_before_relu(chain).after) == "relu · multiply(-1) · multiply(2) · relu"


def test_quantize_to_u8_becomes_a_scale_and_a_shift():
    chain = Chain(decompose(FakeQuantize(-10, 15.5, 0, 255, 256)), "u8")
    simplified = simplify(chain)
    assert str(simplified.chain) == "multiply(10) · add(100) · store u8"
    assert [rewrite.rule for rewrite in simplified.rewrites] == [
        "identity", "identity", "clip_after_round", "futile_clip",
    ]  # fmt: skip


def test_symmetric_i8_becomes_one_scale():
    chain = Chain([Relu(), Multiply([0.5, 0.25]), *decompose(FakeQuantize(-12.8, 12.7, -128, 127, 256))], "i8")
    assert str(simplify(chain).chain) == "multiply([5 … 2.5]) · relu · store i8"


def test_only_what_is_accepted():
    first, second = FakeQuantize(-8, 9, -8, 9, 256), FakeQuantize(-10, 20, 0, 255, 256)
    chain = Chain([*decompose(first), Sum(), *decompose(second)], "u8")
    exact = simplify(chain, accept=FLOAT32)
    assert {rewrite.exactness for rewrite in exact.rewrites} == {FLOAT32}
    assert exact.refused["combined_scale"].code == "not_exact_enough"
    x, dst = np.random.default_rng(0).uniform(-20, 20, (2, 500, 1)).astype(np.float32)
    np.testing.assert_array_equal(exact.chain.run(x, dst), chain.run(x, dst))
    assert str(simplify(chain).chain) == "clip(-8, 9) · multiply(8.5) · sum(8.5) · add(85) · store u8"


def test_text_says_what_was_done_and_what_not():
    text = str(simplify(Chain([Relu(), Multiply(-2), Add(0)])))
    assert text.splitlines() == [
        "relu · multiply(-2) · add(0)",
        "identity (exact in float32): relu · multiply(-2)",
        "not multiply_before_relu: multiply(-2) has a negative scale, which reverses relu",
    ]


@pytest.mark.parametrize("block", range(10))
def test_rules_on_random_chains(block):
    """50 chains each."""
    tried = 0
    for number in range(50):
        rng = np.random.default_rng((1, block, number))
        for rewrite in rewrites(random_chain(rng)):
            tried += 1
            assert wrong(rewrite, rng) is None, f"{rewrite.before}\n{rewrite}"
    assert tried > 100


def test_wrong_sees_a_wrong_rewrite():
    before, after = Chain([Relu(), Multiply(-1)]), Chain([Multiply(-1), Relu()])
    rewrite = rules.Rewrite("multiply_before_relu", before, after, FLOAT32)
    assert "differs in float32" in wrong(rewrite, np.random.default_rng(0))
