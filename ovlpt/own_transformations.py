"""Transformations of a caller's own, which take part as those of the package do. The native library has `add_main` for it.

Each is one of

* a row (`ovlpt.Operation`), for an operation whose dequantization passes: no code is needed;
* a subclass of `ovlpt.LayerTransformation` that names its row as ``operation``;
* the name of an entry point in the group ``ovlpt.transformations``, by which an installed package offers rows and
  classes, one or a tuple of them. What is not named is not loaded.

While a call has them, their rows lie over the package's table, so that markup, restrictions and `explain` know them. A
row of an operation that the table has a rule for replaces that rule, in all its versions.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from typing import TypeVar, get_args

from ovlpt.config import PluginConfig, nearest
from ovlpt.layer_transformation import LayerTransformation, class_of
from ovlpt.openvino_api import WrapType
from ovlpt.operations import OPERATIONS, Operation
from ovlpt.operations.row import Kind
from ovlpt.trace import InputError

GROUP = "ovlpt.transformations"
Given = str | Operation | type[LayerTransformation]
T = TypeVar("T")


def resolved(given: Iterable[Given] | Given) -> tuple[type[LayerTransformation], ...]:
    """The classes of what a caller gives.

    Raises `InputError` for what is none of the three, has no row with a rule, or has the name of another.
    """
    given = (given,) if isinstance(given, (str, Operation, type)) else given
    found = tuple(kind for each in given for kind in _classes(each))
    for kind in found:
        _check_row(kind.operation)
    for name, count in Counter(kind.__name__ for kind in found).items():
        if count > 1:
            raise InputError(f"{count} transformations have the name {name}; settings would not tell them apart")
    return found


def _classes(given: object) -> Sequence[type[LayerTransformation]]:
    if isinstance(given, str):
        offered = _offered(given)
        return [kind for each in offered for kind in _classes(each)]
    if isinstance(given, Operation):
        return [_of_row(given)]
    if not (isinstance(given, type) and issubclass(given, LayerTransformation)):
        raise InputError(
            f"{given!r} is not a transformation; give a row (ovlpt.Operation), a subclass of ovlpt.LayerTransformation, or the "
            f'name of an entry point of the group "{GROUP}"'
        )
    row = getattr(given, "operation", None)
    if not isinstance(row, Operation) or row.kind == "absent":
        raise InputError(f"{given.__name__} has no row; set its operation to an ovlpt.Operation")
    return [given]


def _offered(name: str) -> Sequence[object]:
    """What the packages that are installed offer under a name."""
    points = entry_points(group=GROUP)
    if name not in points.names:
        known = nearest(name, points.names) if points.names else "; none offers any"
        raise InputError(f'no installed package offers transformations "{name}"{known}')
    try:
        offered = points[name].load()
    except Exception as error:
        raise InputError(f'the transformations "{name}" ({points[name].value}) cannot be loaded: {error}') from error
    return offered if isinstance(offered, (tuple, list)) else [offered]


def _check_row(row: Operation) -> None:
    """A kind that there is; versions that this OpenVINO has, or that are of no opset, as the caller's own are."""
    kinds = get_args(Kind)
    if row.kind not in kinds:
        raise InputError(f'the row of {row.name} has no kind "{row.kind}"{nearest(row.kind, kinds)}')
    for name in row.type_names:
        if name.startswith("opset") and not _is_there(name):
            raise InputError(
                f"the row of {row.name} names {name}, which this OpenVINO does not have{_instead(row.name)}"
            )


def _is_there(name: str) -> bool:
    try:
        WrapType(name)
    except RuntimeError:
        return False
    return True


def _instead(name: str) -> str:
    """The end of a sentence about an operation that is in no such opset."""
    if found := next((f"opset{number}" for number in range(1, 30) if _is_there(f"opset{number}.{name}")), None):
        return f"; {found} has it"
    meant = nearest(name, OPERATIONS)
    return f'{meant if "did you mean" in meant else ""}; an operation of your own has opsets=("extension",)'


def _of_row(row: Operation) -> type[LayerTransformation]:
    if row.kind in ("weighted", "absent"):
        raise InputError(
            f"the row of {row.name} is {row.kind}, and a row alone only says how a dequantization passes; give a subclass of "
            "ovlpt.LayerTransformation that has it"
        )
    return class_of(row)


def main_of(
    package: Sequence[type[LayerTransformation]], own: Sequence[type[LayerTransformation]]
) -> list[type[LayerTransformation]]:
    """The transformations of the main step: ``package``'s in their order, each replaced where ``own`` has its operation,
    and after them what is left of ``own``.
    """
    replacements = {kind.operation.name: kind for kind in own}
    steps: list[type[LayerTransformation]] = []
    for kind in package:
        row = getattr(kind, "operation", None)
        step = replacements.get(row.name, kind) if row is not None else kind
        if step not in steps:
            steps.append(step)
    return [*steps, *(kind for kind in own if kind not in steps)]


def known(own: Iterable[type[LayerTransformation]]) -> AbstractContextManager[None]:
    """The table has the rows of these transformations, too."""
    return OPERATIONS.over({kind.operation.name: kind.operation for kind in own})


def knows_own_operations(function: Callable[..., T]) -> Callable[..., T]:
    """While the function runs, the table has the rows of its ``config``, a `PluginConfig` or None, too."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments, **keywords):
        config = signature.bind_partial(*arguments, **keywords).arguments.get("config")
        if not isinstance(config, PluginConfig) or not config.transformations:
            return function(*arguments, **keywords)
        with known(resolved(config.transformations)):
            return function(*arguments, **keywords)

    return call
