"""What the arguments that commands share say."""

from __future__ import annotations

import argparse

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.config_file import load_config
from ovlpt.openvino_api import Core
from ovlpt.own_transformations import resolved
from ovlpt.trace import InputError


def settings(options: argparse.Namespace) -> PluginConfig | None:
    """What ``--config``, ``--transformations`` and ``--force`` say; None without them, which means the device's own."""
    named = tuple(options.transformations)
    if options.config is not None:
        return load_config(options.config, named)
    resolved(named)  # what is wrong with a name is said now
    added = PluginConfig(", ".join(named), transformations=named, extends_device=True) if named else None
    if getattr(options, "force", False):
        return plugin_config.settings_of(Core(), options.device, added, force=True)
    return added


def file_or_settings(options: argparse.Namespace) -> PluginConfig | str | None:
    """The same, for settings that go to other processes: a file's name, if that says everything."""
    return options.config if options.config is not None and not options.transformations else settings(options)


def check_count(value: int | None, option: str, purpose: str) -> None:
    """Raise `InputError` for a number below 1."""
    if value is not None and value < 1:
        raise InputError(f"{option} {value} leaves nothing to {purpose}; give a number of at least 1")
