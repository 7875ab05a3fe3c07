"""A call in a process of its own, for what a process can decide only once: its GPU, its instruction set.

The caller's process stays as it is. Warnings and exceptions of the package come back as if the call had been here.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ovlpt.device.execution_types import last_line
from ovlpt.errors import OvlptError, warn

_logger = logging.getLogger("ovlpt")


def call(function: Callable, *arguments, environment: Mapping[str, str] | None = None) -> tuple[Any, str]:
    """What ``function`` returns, and the text that its process printed.

    The function is found by its name, so it lies at the top of a module; arguments and result can be pickled.
    ``environment``: variables added to the caller's. Raises the `OvlptError` that the function raises, and one of its
    own when the process ends otherwise.
    """
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question"), Path(folder, "answer")
        question.write_bytes(pickle.dumps((function, arguments)))
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from ovlpt.device import subprocess_call; subprocess_call.work()"
        )
        _logger.info("runs in a process of its own")
        done = subprocess.run(
            [sys.executable, "-c", code, str(question), str(answer)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
        )
        if not answer.exists():
            end = f"ended by signal {-done.returncode}" if done.returncode < 0 else last_line(done.stderr)
            name = getattr(function, "func", function).__name__
            raise OvlptError(f"the process that was to run {name} failed: {end}")
        value, error, messages = pickle.loads(answer.read_bytes())
    for message in messages:
        warn(message)
    if error is not None:
        raise error
    return value, done.stdout


def work() -> None:
    """The other side: read the question, write the answer."""
    question, answer = map(Path, sys.argv[1:])
    function, arguments = pickle.loads(question.read_bytes())
    value = error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            value = function(*arguments)
        except OvlptError as raised:
            error = raised
    messages = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    answer.write_bytes(pickle.dumps((value, error, messages)))
