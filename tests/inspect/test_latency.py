"""Runs in turn, and the interval of their ratio. No time is asserted."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.inspect.latency import bootstrap_interval, interleaved_latencies, median_ratio


def test_rounds_alternate_after_three_that_do_not_count():
    calls = []
    found = interleaved_latencies(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, seconds=0, least=4, most=4
    )
    assert "".join(calls) == "ab" * 3 + "abba" * 2
    assert {name: len(times) for name, times in found.items()} == {"a": 4, "b": 4}


def test_progress_ends_at_one_and_never_falls():
    parts = []
    interleaved_latencies({"a": lambda: None}, seconds=0.01, least=2, most=None, progress=parts.append)
    assert parts == sorted(parts)
    assert parts[-1] == 1


def test_the_ratio_is_paired():
    assert median_ratio([1, 20, 3], [2, 40, 6]) == 0.5


def test_the_interval_holds_what_is_measured_without_noise():
    assert bootstrap_interval([np.full(10, 0.5)] * 6) == (0.5, 0.5)


@pytest.mark.parametrize(("ratio", "significant"), [(1.0, False), (0.9, True)])
def test_the_interval_of_noisy_blocks(ratio, significant):
    rng = np.random.default_rng(1)
    blocks = [ratio * np.exp(rng.normal(shift, 0.05, 50)) for shift in (0.01, -0.01, 0.005, -0.005, 0.02, -0.02)]
    low, high = bootstrap_interval(blocks)
    assert low < np.median(np.concatenate(blocks)) < high
    assert (not low <= 1 <= high) == significant


def test_blocks_that_differ_widen_the_interval():
    """A thousand pairs in blocks that disagree say less than as many that do not."""
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.001, (6, 200))
    alike = bootstrap_interval(list(np.exp(noise)))
    apart = bootstrap_interval(list(np.exp(noise + np.linspace(-0.03, 0.03, 6)[:, None])))
    assert apart[1] - apart[0] > 10 * (alike[1] - alike[0])


def test_blocks_that_the_machine_disturbed_leave_the_interval_positive():
    """Widened by differences, an interval of which two blocks of six are far off began below zero."""
    low, high = bootstrap_interval([np.full(3, ratio) for ratio in (0.2, 0.2, 0.8, 0.9, 1.0, 0.9)])
    assert 0 < low < 0.2
    assert 0.9 < high < 1.1


def test_few_blocks_make_the_interval_as_wide_as_it_has_to_be():
    """Blocks whose medians vary by 3 %: 81 of 100 intervals of four held the truth."""
    rng = np.random.default_rng(3)
    draws = [[np.exp(rng.normal(rng.normal(0, 0.03), 0.03, 20)) for _ in range(4)] for _ in range(100)]
    held = [low <= 1 <= high for low, high in (bootstrap_interval(blocks, samples=200) for blocks in draws)]
    assert 93 <= sum(held) <= 99
