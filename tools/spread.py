"""A plugin for pytest: of the tests a share, which their names choose. ``OVLPT_SHARE``: "2/4", the third of four."""

from __future__ import annotations

import os
import zlib

import pytest

SHARE = "OVLPT_SHARE"
ALL = "0/1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = map(int, os.environ[SHARE].split("/"))
    kept, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (kept if zlib.crc32(item.nodeid.encode()) % count == number else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept
