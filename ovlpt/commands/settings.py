"""The arguments that commands share, each declared once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ovlpt.commands.printing import STDOUT
from ovlpt.files import check_writable
from ovlpt.trace import InputError

if TYPE_CHECKING:
    from ovlpt.config import PluginConfig


def add_command(
    commands, name: str, call: Callable[[argparse.Namespace], int], summary: str, description: str, example: str
) -> argparse.ArgumentParser:
    """A command whose help ends with an example. ``summary``: its line in ``ovlpt --help``."""
    parser = commands.add_parser(name, help=summary, description=description, epilog=f"example: {example}")
    parser.set_defaults(call=call, command=name)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say what is done; -vv: to each operation too"
    )
    return parser


def add_model(parser: argparse.ArgumentParser, otherwise: str | None = None) -> None:
    """MODEL and the device. ``otherwise``: what is taken without MODEL, where it may be left out."""
    what = "a quantized model (.xml, .onnx …)"
    if otherwise is None:
        parser.add_argument("model", metavar="MODEL", help=what)
    else:
        parser.add_argument("model", metavar="MODEL", nargs="?", help=f"{what}; default: {otherwise}")
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--device", default="CPU", metavar="DEVICE", help="default: CPU")


def add_settings(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--force", action="store_true", help="also for a device without int8")


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE.toml", help="settings instead of the device's own")
    parser.add_argument(
        "--transformations",
        action="append",
        default=[],
        metavar="NAME",
        help="beside those of ovlpt, the ones that an installed package offers by this name; may be repeated",
    )


def settings(options: argparse.Namespace) -> PluginConfig | None:
    """What ``--config``, ``--transformations`` and ``--force`` say; None without them, which means the device's own."""
    from ovlpt import plugin_config  # here, not above: the help of all commands is to be there at once
    from ovlpt.config import PluginConfig
    from ovlpt.config_file import load_config
    from ovlpt.openvino_api import Core
    from ovlpt.own_transformations import resolved

    named = tuple(options.transformations)
    if options.config is not None:
        return load_config(options.config, named)
    resolved(named)  # what is wrong with a name is said now
    added = PluginConfig(", ".join(named), transformations=named, extends_device=True) if named else None
    if getattr(options, "force", False):
        return plugin_config.settings_of(Core(), options.device, added, force=True)
    return added


def file_or_settings(options: argparse.Namespace) -> PluginConfig | str | None:
    """The same for what hands settings to other processes: a file's name where that says all."""
    return options.config if options.config is not None and not options.transformations else settings(options)


def add_input(parser: argparse.ArgumentParser, what: str = "one array per input; default: random") -> None:
    parser.add_argument("-i", "--input", metavar="DATA.npz", help=what)


def add_float(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "-f", "--float", metavar="FLOAT.xml", dest="float_model", help=f"the model before quantization, {purpose}"
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """What is written is an `ovlpt.commands.printing.write_result`."""
    parser.add_argument("--json", metavar="FILE", help=f'write {what} to a file; "-": the standard output')


def check_outputs(options: argparse.Namespace) -> None:
    """Raise `InputError` where a file that a command is to write cannot be: before the work, not after it."""
    for name in ("json", "junit", "csv", "save_baseline", "save_counters"):
        path = getattr(options, name, None)
        if (name, path) != ("json", STDOUT):
            check_writable(path)


def check_count(value: int | None, option: str, purpose: str) -> None:
    """Raise `InputError` for a number below 1."""
    if value is not None and value < 1:
        raise InputError(f"{option} {value} leaves nothing to {purpose}; give a number of at least 1")
