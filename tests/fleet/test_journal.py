"""What a run finds of an earlier one in its journal."""

from __future__ import annotations

import os

import pytest

from ovlpt.fleet.journal import Journal
from ovlpt.trace import InputError

RUN = {"command": "compare", "model": "abc"}
MACHINE = {"CPU": "this"}


@pytest.fixture
def path(tmp_path):
    with Journal(tmp_path / "journal", RUN) as journal:
        journal.add("a", {"sum": 3 << 2000}, MACHINE)
        journal.add("b", [1.5, "x"], MACHINE)
    return tmp_path / "journal"


def test_what_is_finished_is_there_again(path):
    with Journal(path, RUN) as journal:
        assert journal.finished == {"a": {"sum": 3 << 2000}, "b": [1.5, "x"]}
        assert journal.machine == MACHINE


@pytest.mark.parametrize("cut", range(1, 30, 7))
def test_a_line_that_was_half_written_does_not_count(path, cut):
    os.truncate(path, path.stat().st_size - cut)
    with Journal(path, RUN) as journal:
        assert list(journal.finished) == ["a"]
        journal.add("c", 1, MACHINE)
    with Journal(path, RUN) as journal:
        assert list(journal.finished) == ["a", "c"]


def test_a_first_line_that_was_half_written(tmp_path):
    (tmp_path / "journal").write_text('{"form": "ovl')
    with Journal(tmp_path / "journal", RUN) as journal:
        assert journal.finished == {}


def test_another_run_is_refused_by_what_differs(path):
    with pytest.raises(InputError, match=r"of another run \(model differ"):
        Journal(path, {**RUN, "model": "xyz"})


@pytest.mark.parametrize("content", ["no journal\n", "no line", '{"form": 1}\n[]\n', "{}\n"])
def test_another_file_is_refused_and_stays(tmp_path, content):
    (tmp_path / "file").write_text(content)
    with pytest.raises(InputError, match=r"is not a journal|of another run"):
        Journal(tmp_path / "file", RUN)
    assert (tmp_path / "file").read_text() == content


def test_two_runs_do_not_share_one(path):
    pytest.importorskip("fcntl", reason="Windows has no such locks")
    with Journal(path, RUN), pytest.raises(InputError, match="another run writes"):
        Journal(path, RUN)
