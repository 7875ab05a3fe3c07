"""The line that says that a command still works: on a terminal only, beside what is printed, gone at the end."""

from __future__ import annotations

import io
import logging
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr

import pytest

from ovlpt import cli, data
from ovlpt.commands import activity, explain
from ovlpt.commands.printing import console, say
from ovlpt.trace import InputError

logger = logging.getLogger("ovlpt")
CLEARED, HIDDEN, BACK = "\x1b[2K", "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def of_some_kind(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def test_it_shows_the_last_step_and_the_part_that_is_done():
    with redirect_stderr(Terminal()) as terminal, activity.shown():
        activity._shown.start()
        logger.info("compiles\x1b[31m [b]it[/b]")
        activity._shown._bar.refresh()
        activity.progress("measures")(0.5)
        activity._shown._bar.refresh()
    assert "compiles\\x1b[31m [b]it[/b]" in terminal.getvalue()
    assert "measures" in terminal.getvalue()
    assert activity._shown is None
    assert not any(isinstance(each, activity.Activity) for each in logger.handlers)


@pytest.mark.parametrize("width", [60, 80])
def test_a_long_step_leaves_the_time_whole(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with redirect_stderr(Terminal()) as terminal, activity.shown():
        activity._shown.start()
        logger.info(f"compiles {'a' * 100}")
        activity._shown._bar.refresh()
        activity.progress("measures " + "b" * 100)(0.5)
        activity._shown._bar.refresh()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).splitlines()
    drawn = [line for line in re.split(r"[\r\n]", "\n".join(lines)) if "aaa" in line or "bbb" in line]
    assert len(drawn) > 1
    for line in drawn:
        assert re.search(r"\d:\d\d:\d\d [━╸╺]{20} ", line), line
        assert line.rstrip().endswith("…")
        assert len(line) <= width


@pytest.mark.parametrize(
    ("write", "out", "err"),
    [
        (lambda: console().print("text"), "text\n", ""),
        (lambda: say("text"), "text\n", ""),
        (lambda: cli.complain("text"), "", "ovlpt: text\n"),
    ],
)
def test_it_is_away_while_something_is_printed(write, out, err, capsys):
    with redirect_stderr(Terminal()) as terminal, activity.shown():
        activity._shown.start()
        logger.info("compiles")
        activity._shown._bar.refresh()
        shown = len(terminal.getvalue())
        write()
        written = terminal.getvalue()[shown:]
        before, after = written.split(err, 1) if err else (written[: written.index(HIDDEN)], written)
        assert "compiles" in after
    assert before.endswith((CLEARED, BACK))
    assert capsys.readouterr().out == out


def test_nothing_before_its_time_and_nothing_in_a_pipe(monkeypatch):
    monkeypatch.setattr(activity, "DELAY", 3600)
    with redirect_stderr(Terminal()) as terminal:
        with activity.shown():
            logger.info("compiles")
        with activity.shown(wanted=False):
            assert activity._shown is None
    assert terminal.getvalue() == ""
    with redirect_stderr(io.StringIO()), activity.shown():
        assert activity._shown is None


@pytest.mark.parametrize(
    ("raised", "status", "end"), [(InputError("no"), 2, "ovlpt: no\n"), (KeyboardInterrupt(), 130, "")]
)
def test_it_is_gone_however_a_command_ends(raised, status, end, monkeypatch):
    def failing(*_, **__):
        activity._shown.start()
        raise raised

    monkeypatch.setattr(explain, "explain", failing)
    with redirect_stderr(Terminal()) as terminal:
        assert cli.main(["explain", str(data.digits())]) == status
    shown = terminal.getvalue()
    assert shown.endswith(end)
    assert shown.removesuffix(end).endswith((CLEARED, BACK))
    assert shown.count(HIDDEN) == shown.count(BACK) > 0


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ovlpt", "ex"], "explain"),
        (["ovlpt", "check", "--save-b"], "--save-baseline"),
        (["ovlpt", "run", "ne"], "net.xml"),
    ],
)
def test_bash_completes(words, expected, tmp_path, capsys):
    (tmp_path / "net.xml").touch()
    with pytest.raises(SystemExit):
        cli.main(["--completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
    program = f'source ./script; {asked}; _shtab_ovlpt; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]


def test_fish_completes_options_of_one_dash_and_a_word(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--completion", "fish"])
    printed = capsys.readouterr().out
    assert " -o hint -xka " in printed
    assert not re.search(r"^complete .* -s \w\w", printed, re.MULTILINE)


def test_completion_names_the_package_that_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["--completion", "zsh"]) == 2
    assert "pip install 'ovlpt[completion]'" in capsys.readouterr().err
