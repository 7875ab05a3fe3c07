"""The settings that every command which transforms takes."""

from __future__ import annotations

import argparse

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.config_file import load_config
from ovlpt.openvino_api import Core


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE.toml", help="settings instead of the device's own")
    parser.add_argument("--force", action="store_true", help="also for a device without int8")


def settings(options: argparse.Namespace) -> PluginConfig | None:
    """What ``--config`` names, or the device's own by ``--force``; None without either, which means the device's own."""
    if options.config:
        return load_config(options.config)
    return plugin_config.for_device(Core(), options.device, force=True) if options.force else None
