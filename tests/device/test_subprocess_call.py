from __future__ import annotations

import os
import signal
import warnings

import pytest

from ovlpt.device import subprocess_call
from ovlpt.trace import InputError, OvlptError


def answer(value):
    warnings.warn("a word on the way", stacklevel=2)
    print("printed")
    return value, os.environ.get("OVLPT_TEST"), os.getpid()


def refuse(text):
    raise InputError(text)


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


def test_value_output_environment_and_warnings_come_back():
    with pytest.warns(UserWarning, match="a word on the way"):
        (value, variable, process), printed = subprocess_call.call(answer, {1: "a"}, environment={"OVLPT_TEST": "set"})
    assert (value, variable, printed) == ({1: "a"}, "set", "printed\n")
    assert process != os.getpid()
    assert "OVLPT_TEST" not in os.environ


@pytest.mark.parametrize(
    ("function", "arguments", "kind", "text"),
    [
        (refuse, ("one sentence",), InputError, "^one sentence$"),
        (crash, (), OvlptError, "crash failed: ended by signal 9"),
    ],
)
def test_failures_come_back(function, arguments, kind, text):
    with pytest.raises(kind, match=text):
        subprocess_call.call(function, *arguments)
