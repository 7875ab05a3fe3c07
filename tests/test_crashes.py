"""What ends a command's process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ovlpt import data

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no process is forked on Windows")


# Whoever forks in it goes on late, as on a machine with much to do.
LATE = "fork = os.fork\nos.fork = lambda: (child := fork()) and (time.sleep(0.5) or child)"


def start(body: str, before: str = "") -> subprocess.Popen:
    """A program whose command is ``body``, in which ``end()`` is a fault; ``before``: what it does first."""
    lines = ["import os, signal, sys, time", "from ovlpt import cli, crashes", ""]
    lines += ["signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it", ""]
    lines += ["def end(*_):", "    os.kill(os.getpid(), signal.SIGSEGV)", "    time.sleep(60)", "", "def command():"]
    lines += [f"    {line}" for line in body.splitlines()] + ["", before, "sys.exit(crashes.supervised(command))"]
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(body: str) -> tuple[int, str, str]:
    running = start(body)
    printed, complained = running.communicate()
    return running.returncode, printed, complained


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_status_is_that_of_the_command(status):
    assert outcome(f"print('done')\nreturn {status}") == (status, "done\n", "")


def test_a_fault_is_one_sentence():
    status, printed, complained = outcome("end()")
    assert (status, printed) == (3, "")
    assert complained == "ovlpt: SIGSEGV ended the process: a bug in OpenVINO, or in ovlpt\n"


def test_what_a_command_can_do_without_is_left_out_the_second_time():
    body = "if crashes.left_out('it'):\n    return print('without it') or 1\nwith crashes.optional('it'):\n    end()"
    assert outcome(body) == (1, "without it\n", "")


def test_a_fault_after_that_is_told():
    body = "if not crashes.left_out('it'):\n    with crashes.optional('it'):\n        end()\nend()"
    assert outcome(body)[0] == 3


@pytest.mark.parametrize("before", ["", LATE], ids=["", "late"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_is_passed_on(name, before):
    """To the one process that has the number which is known outside; also one that comes right after the fork."""
    body = "signal.signal(signal.SIGINT, signal.SIG_DFL)\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    running = start(body, before)
    child = int(running.stdout.readline())
    assert child != running.pid
    running.send_signal(getattr(signal, name))
    assert running.communicate(timeout=20) == ("", "")  # the child, which writes there, has ended
    assert running.returncode == -getattr(signal, name)


def test_another_end_is_that_of_the_program():
    """As where memory runs out."""
    assert outcome("os.kill(os.getpid(), signal.SIGKILL)") == (-signal.SIGKILL, "", "")


def test_check_compares_with_ovlpt_itself_where_stock_ends_the_process():
    body = "\n".join(
        [
            "from ovlpt.inspect.numbers.variants import Variants",
            "run = Variants._run",
            "Variants._run = lambda self, properties, form, model: (",
            "    end() if form == 'stock' else run(self, properties, form, model))",
            f"return cli.main(['check', {str(data.digits())!r}])",
        ]
    )
    status, printed, complained = outcome(body)
    assert (status, complained) == (0, "")
    assert "the plugin with its own LPT ended the process" in printed
    assert "(native_only)" in printed
    assert "all as close as stock or closer" in printed
