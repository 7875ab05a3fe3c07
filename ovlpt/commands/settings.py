"""The settings that every command which transforms takes."""

from __future__ import annotations

import argparse

from ovlpt.config import PluginConfig
from ovlpt.config_file import load_config


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE.toml", help="settings instead of the device's own")


def settings(options: argparse.Namespace) -> PluginConfig | None:
    """What ``--config`` names; None without it, which means the device's own."""
    return load_config(options.config) if options.config else None
