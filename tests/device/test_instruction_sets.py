from __future__ import annotations

import re
from pathlib import Path

import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.device import instruction_sets, subprocess_call
from ovlpt.openvino_api import RELEASE
from ovlpt.trace import InputError
from tests.networks import one_convolution

CPU_FLAGS = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n")[0]))


def test_an_older_cpu():
    found = ovlpt.check(one_convolution(), expect="int8:Convolution", isa="sse41")
    assert found.ok
    assert found.settings["isa"] == "sse41"
    assert "sse42" in found.compared[0].exec_type  # oneDNN's spelling
    (note,) = found.notes
    assert note.startswith("sse41: oneDNN runs as Intel SSE4.1, convolutions in jit_sse42")
    assert ("no OV_CPU_MAX_ISA" in note) == (RELEASE < (2025, 0))


def test_a_limit_beyond_the_cpu_is_refused(monkeypatch):
    """oneDNN ignores it silently and says what it runs as."""
    said = "onednn_verbose,v1,info,cpu,isa:Intel AVX2\n"
    monkeypatch.setattr(subprocess_call, "call", lambda *_, **__: (("jit_avx2_I8", ("INT8",)), said))
    monkeypatch.setattr(instruction_sets, "limits", instruction_sets.limits.__wrapped__)
    with pytest.raises(InputError, match='"avx512_vnni" does not take effect on this CPU: oneDNN runs as Intel AVX2'):
        instruction_sets.limits("avx512_vnni")
    assert instruction_sets.limits("avx2").kernel == "jit_avx2_I8"


def test_avx512_takes_effect_where_the_cpu_has_it():
    if "avx512_vnni" in CPU_FLAGS:
        assert "avx512" in instruction_sets.limits("avx512_vnni").kernel
    else:
        with pytest.raises(InputError, match="does not take effect on this CPU"):
            instruction_sets.limits("avx512_vnni")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"isa": "mmx"}, 'no instruction set "mmx"; there are sse41, avx2'),
        ({"isa": "avx2", "device": "GPU"}, 'an instruction set needs the device "CPU", not "GPU"'),
    ],
)
def test_what_cannot_be_limited(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        ovlpt.check(one_convolution(), **arguments)


def test_a_command_on_an_older_cpu(capsys):
    assert cli.main(["explain", str(data.digits()), "--isa", "sse41", "--strict"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("sse41: oneDNN runs as Intel SSE4.1")
    assert "11 of 11 layers with weights run in int8" in printed
    assert cli.main(["explain", str(data.digits()), "--isa", "mmx"]) == 2
    assert cli.main(["explain", str(data.digits()), "--isa", "avx2", "-d", "GPU"]) == 2
