"""What `tools.releases` says of a step that fails."""

from __future__ import annotations

from tools.releases import MOST, told


def test_tests_that_fail():
    output = "FAILED ../clone/tests/main/test_add.py::test_one[a b] - assert 1\nERROR tests/main/test_pad.py\n2 failed in 1 s\n"
    assert told(output, "") == "main/test_add.py::test_one[a b], main/test_pad.py"
    many = "\n".join(f"FAILED tests/main/test_add.py::test_{number}" for number in range(MOST + 3))
    assert told(many, "").endswith(f"test_{MOST - 1} and 3 more")


def test_random_graphs_that_fail():
    output = "seed 12\ncompile: numbers off by 2\nx = parameter()\n\nseed 13\ntransform: RuntimeError\n\n40 graphs, 2 fail, 1 s each\n"
    assert told(output, "a warning\n") == "seed 12 (compile: numbers off by 2), seed 13 (transform: RuntimeError)"


def test_any_other_step():
    assert told("one\ntwo\n", "") == "two"
    assert told("one\n", "Traceback\nValueError: no\n") == "ValueError: no"
