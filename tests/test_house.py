"""The habits of the house that no linter knows: lengths, imports, and where tests and quirks are at home."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ovlpt.operations import RECURRENT, families
from tests.test_floors import ROOT, SOURCES, imports, module_of

LONGEST = 50  # lines of a function after its signature and docstring
LONG = {  # and why
    "tests.numpy_model._outputs": "one branch for each operation",
    "tests.test_hostile_input.folder": "a list of files, one after the other",
    "tools.fusions_table.rows": "the rows of a table, one after the other",
    "tools.fuzz.graphs.random_graph": "one branch for each way in which a graph grows",
    "tools.post_ops.build": "one branch for each post-operation",
    "tools.quantized_operators.onnx_models._model": "one branch for each operator",
    "tools.quantized_operators.run_caffe2.run": "one branch for each operator",
    "tools.quantized_operators.tflite_models.model_of": "one branch for each operator",
}

LATE = {  # modules that import others of the package within functions, and why
    "ovlpt.__main__": "an interrupt before the command begins is answered, too",
    "ovlpt.drop_in": "most calls need neither tuning nor a check of numbers, whose modules take time to import",
    "ovlpt.files": "the help of commands is to be there at once",
    "ovlpt.inspect.executed": "the algebra of what follows a layer takes time to import",
    "ovlpt.inspect.explain": "the algebra of what follows a layer takes time to import",
    "ovlpt.inspect.peak_memory": "a program of its own, which imports ovlpt in one of two cases",
}

PACKAGE = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("ovlpt", "plugin_config")]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


# `LowPrecision` picks classes and rows by it; these are what it picks from, what hands it on, and the base of all passes.
NATIVE_ONLY = re.compile(
    r"ovlpt\.(config|config_file|layer_transformation|low_precision|cleanup\.fq_stripping|device\..*|inspect\..*|(.*\.)?native(\..*)?)"
)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_functions_are_short():
    long = {}
    for path in SOURCES:
        for function in functions(tree_of(path)):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            if body and (lines := function.end_lineno - body[0].lineno + 1) > LONGEST:
                long[f"{module_of(path)}.{function.name}"] = lines
    assert long.keys() - LONG.keys() == set(), long
    assert LONG.keys() - long.keys() == set(), "these are short now"


def imports_late(tree: ast.AST) -> bool:
    return any(imported.split(".")[0] == "ovlpt" for function in functions(tree) for imported, _ in imports(function))


def test_late_imports_have_a_reason():
    assert {module_of(path) for path in PACKAGE if imports_late(tree_of(path))} == LATE.keys()


def test_no_circle_of_imports():
    modules = {module_of(path): path for path in PACKAGE}
    waiting = {name: set(imported_at_once(tree_of(path), modules)) - {name} for name, path in modules.items()}
    while free := [name for name, imported in waiting.items() if not imported & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert not waiting, "these import each other"


def imported_at_once(tree: ast.Module, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports at its top; of a package the part, where it is one."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                part = f"{node.module}.{alias.name}"
                if part in modules:
                    yield part
                elif node.module in modules:
                    yield node.module


def test_nobody_reaches_for_what_is_private():
    reached = [
        f"{module_of(path)}: {node.module}.{alias.name}"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("ovlpt", "tools")
        for alias in node.names
        if re.match(r"_[a-z]", alias.name)
    ]
    assert not reached


def test_rules_do_not_ask_whether_they_are_native():
    """What the native library does otherwise is a row or class that replaces another."""
    asking = {module_of(path) for path in PACKAGE if ".native_only" in path.read_text("utf-8")}
    assert [module for module in sorted(asking) if not NATIVE_ONLY.fullmatch(module)] == []


def test_families_of_operations_are_not_listed_again():
    """`ovlpt.operations.families` has them; `layer_types` lists layers of plugins, some of which have names of operations."""
    known = [*(each for each in vars(families).values() if isinstance(each, frozenset)), frozenset(RECURRENT)]
    homes = {"ovlpt.operations.families", "ovlpt.operations.table", "ovlpt.device.layer_types"}
    listed = [
        f"{module_of(path)}, line {node.lineno}"
        for path in PACKAGE
        if module_of(path) not in homes
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.Tuple, ast.Set, ast.List))
        and any(family <= {each.value for each in node.elts if isinstance(each, ast.Constant)} for family in known)
    ]
    assert not listed


@pytest.mark.parametrize("step", ["canonicalize", "cleanup", "main", "markup", "prerequisites"])
def test_each_module_of_a_step_has_a_test_of_its_name(step):
    shared = {"__init__", "native", "cleanup_transformation", "pull_through_dequantization"}
    modules = {path.stem for path in (ROOT / "ovlpt" / step).glob("*.py")} - shared
    assert {f"test_{name}" for name in modules} <= {path.stem for path in (ROOT / "tests" / step).glob("test_*.py")}


def test_each_tool_is_listed():
    """By what it is for; what is imported only is not a tool."""
    page = (ROOT / "docs" / "tools.md").read_text("utf-8")
    runs = {path: "__name__ ==" in path.read_text("utf-8") for path in (ROOT / "tools").glob("*.py")}
    tools = {path.stem for path, alone in runs.items() if alone}
    tools |= {path.parent.name for path in (ROOT / "tools").glob("*/__main__.py")}
    assert {name for name in tools if f"python -m tools.{name}" not in page} == set()
