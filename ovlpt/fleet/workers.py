"""Workers: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from ovlpt.interrupts import end_silently, held_back
from ovlpt.trace import InputError

_PATIENCE = 60.0  # seconds in which a scheduler that has gone away may come back


def processes(count: int) -> Callable[[], Executor]:
    """Makes a pool of ``count`` processes, which start when they are needed. Raises `InputError` for no process."""
    if count < 1:
        raise InputError(f"{count} workers compute nothing; give at least 1")
    # a fork of a process in which OpenVINO has threads can stop for ever
    return lambda: _Pool(count, multiprocessing.get_context("spawn"), _begin)


def _begin() -> None:
    """Of a process, before its first task. The command that it works for has told OpenVINO's telemetry of itself; here
    that would start another process, which outlives this one, and says of an interrupt where it was.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # None: it cannot be imported
    end_silently()


class _Pool(ProcessPoolExecutor):
    """Its processes start with interrupts blocked: while they import, Python would print where it was."""

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Future:
        with held_back():
            return super().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nobody waits for what is under way. Its end is waited for: where Python's end comes before, it can meet a pool
        that is half closed, and says so.
        """
        for process in list((self._processes or {}).values()):
            process.terminate()
        super().shutdown(wait=True, cancel_futures=True)


class Cluster:
    """A Dask cluster, by the address of its scheduler; called, it connects. Needs the extra ``cluster``.

    Raises `InputError` without the package, and where nobody answers at the address.
    """

    def __init__(self, address: str, timeout: float = 10.0):
        try:
            import distributed
        except ModuleNotFoundError as error:
            raise InputError("a scheduler needs the package distributed: pip install 'ovlpt[cluster]'") from error
        # a lost scheduler is said in one sentence, and only where none comes back
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._distributed, self._address, self._timeout = distributed, address, timeout
        self._client = self._connected(timeout)

    def __call__(self) -> Executor:
        if self._client is None or self._client.status != "running":
            self.close()
            self._client = self._connected(_PATIENCE)
        return self._client.get_executor()

    @property
    def dashboard(self) -> str:
        """The address of a page that shows what the cluster does, "" where it has none."""
        return (self._client and self._client.dashboard_link) or ""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=2)

    def _connected(self, patience: float):
        end = time.monotonic() + patience
        while True:
            left = end - time.monotonic()
            try:
                return self._attempt(max(left, 1))
            except (OSError, ValueError) as error:
                if left <= 1 or isinstance(error, ValueError):
                    raise InputError(
                        f'no Dask scheduler answers at "{self._address}"; start one with: dask scheduler'
                    ) from error
                time.sleep(0.5)

    def _attempt(self, timeout: float):
        """A client. One that fails is closed at once: left to the garbage collector, its end can come while the next one
        starts, in the same thread, and wait for ever for a lock that the start holds.
        """
        kind = self._distributed.Client
        client = kind.__new__(kind)
        try:
            kind.__init__(client, self._address, timeout=timeout, set_as_default=False)
        except BaseException:
            client.__del__()
            raise
        return client
