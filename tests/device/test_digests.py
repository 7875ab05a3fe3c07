"""Digests that are kept: a file is read again exactly when it may have changed."""

from __future__ import annotations

import os
import sys
import time

import pytest

import ovlpt
from ovlpt import data
from ovlpt.device import digests
from ovlpt.device.properties import EXACT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say when a file was altered")
SETTLED = -(10**18)  # at once


@pytest.fixture
def reads(monkeypatch):
    """Of which files a digest was made."""
    made, original = [], digests.digest

    def counted(files):
        made.append(list(map(str, files)))
        return original(files)

    monkeypatch.setattr(digests, "digest", counted)
    monkeypatch.setattr(digests, "_SETTLED", SETTLED)
    return made


def test_a_file_is_read_once(tmp_path, reads):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    found = [digests.kept_digest([file], tmp_path / "kept") for _ in range(3)]
    assert found == [digests.digest([file])] * 3
    assert len(reads) == 2


def test_a_file_that_was_changed_is_read(tmp_path, reads):
    """Of the same size, and with the time at which it was last written set back."""
    file = tmp_path / "file"
    file.write_bytes(b"one")
    before, first = file.stat(), digests.kept_digest([file], tmp_path)
    time.sleep(0.02)  # clocks of file systems are coarse: see the next test
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests.kept_digest([file], tmp_path) == digests.digest([file]) != first


def test_a_file_that_was_just_written_is_read_again(tmp_path, reads, monkeypatch):
    """It may be written again at the same time, by the clock of the file system."""
    monkeypatch.setattr(digests, "_SETTLED", 10**12)
    file = tmp_path / "file"
    file.write_bytes(b"one")
    for _ in range(2):
        digests.kept_digest([file], tmp_path)
    assert len(reads) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"files": 1}', '{"digest": "a"}'])
def test_a_spoiled_note(tmp_path, reads, text):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    first = digests.kept_digest([file], tmp_path)
    (note,) = (tmp_path / "ovlpt.digests").iterdir()
    note.write_text(text)
    assert digests.kept_digest([file], tmp_path) == first
    assert len(reads) == 2


def test_a_folder_that_cannot_be_made(tmp_path, reads):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    assert digests.kept_digest([file], file) == digests.digest([file])


def test_the_second_compilation_reads_nothing(core, tmp_path, reads):
    """Neither the weights of the model nor those of the entry; but an entry that is spoiled is made anew."""
    properties = {name: value for name, value in EXACT.items() if name != "CACHE_DIR"}
    for _ in range(3):
        ovlpt.compile_model(data.digits(), "CPU", properties, core=core, cache_dir=tmp_path)
    assert len(reads) == 3  # the modules of the package, the model's files, and the entry's
    (weights,) = tmp_path.glob("ovlpt-*/model.bin")
    time.sleep(0.02)
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    ovlpt.compile_model(data.digits(), "CPU", properties, core=core, cache_dir=tmp_path)
    assert weights.read_bytes() != content
