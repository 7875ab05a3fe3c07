"""A module imports from its own floor or lower, and the package's parts are all installed."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = {
    "ovlpt.trace": 0, "ovlpt.precisions": 0, "ovlpt.openvino_api": 0, "ovlpt.fake_quantize": 0, "ovlpt.reference": 0,
    "ovlpt.layered": 0, "ovlpt.data": 0, "ovlpt.display": 0, "ovlpt.version": 0, "ovlpt.files": 0, "ovlpt.reasons": 0,
    "ovlpt.errors": 0, "ovlpt.choices": 0, "ovlpt.interrupts": 0, "ovlpt.crashes": 0,
    "ovlpt.operations": 1,
    "ovlpt.graph": 2, "ovlpt.attributes": 2, "ovlpt.config": 2,
    "ovlpt.layer_transformation": 3, "ovlpt.predicates": 3,
    "ovlpt.canonicalize": 4, "ovlpt.prerequisites": 4, "ovlpt.markup": 4, "ovlpt.main": 4, "ovlpt.cleanup": 4,
    "ovlpt.own_transformations": 4,
    "ovlpt.low_precision": 5, "ovlpt.config_file": 5, "ovlpt.fusions": 5, "ovlpt.common_optimizations": 5, "ovlpt.qdq_stripping": 5,
    "ovlpt.plugin_config": 6, "ovlpt.device": 6, "ovlpt.interpreter": 6, "ovlpt.inspect": 6, "ovlpt.fleet": 6,
    "ovlpt.drop_in": 7, "ovlpt.commands": 7, "ovlpt.cli": 7, "ovlpt.__main__": 7, "ovlpt": 7,
    "tools": 8, "tests": 8,
}  # fmt: skip
STEPS = {"ovlpt.canonicalize", "ovlpt.prerequisites", "ovlpt.markup", "ovlpt.main", "ovlpt.cleanup"}
CORE = {"openvino", "numpy"}
EXTRAS = {
    "rich",
    "torch",
    "transformers",
    "nncf",
    "sklearn",
    "pytest",
    "hypothesis",
    "onnx",
    "scipy",
    "ai_edge_litert",
    "onnxruntime",
    "jinja2",
    "fast_sugiyama",
    "pandas",
    "nbclient",
    "nbformat",
    "playwright",
    "distributed",
    "loky",
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("ovlpt", *parts) if parts[0] == "plugin_config" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The entry of FLOORS that a module belongs to."""
    parts = module.split(".")
    return next(name for size in range(len(parts), 0, -1) if (name := ".".join(parts[:size])) in FLOORS)


SOURCES = [
    path for folder in ("ovlpt", "plugin_config", "tools", "tests") for path in sorted((ROOT / folder).rglob("*.py"))
]


def imports(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in FLOORS else node.module), node


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_floor(path: Path):
    module, tree = module_of(path), ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for imported, node in imports(tree):
        root = imported.split(".")[0]
        assert root != "plugin_config", "plugin_config is imported as ovlpt.plugin_config"
        if root in ("ovlpt", "tools", "tests"):
            mine, theirs = room(module), room(imported)
            if theirs == "ovlpt" and module not in ("ovlpt", "ovlpt.cli") and FLOORS[mine] < 8:
                raise AssertionError(f"{module} imports the package's front door")
            assert FLOORS[theirs] <= FLOORS[mine], (
                f"{module} (floor {FLOORS[mine]}) imports {imported} (floor {FLOORS[theirs]})"
            )
            assert not (mine in STEPS and theirs in STEPS and mine != theirs), f"{module} imports the step {imported}"
        elif root in EXTRAS and FLOORS[room(module)] < 8:
            assert id(node) not in top, f"{module} imports the extra {root} at the top"


def test_every_package_is_installed():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        module_of(path)
        for path in SOURCES
        if path.name == "__init__.py" and path.relative_to(ROOT).parts[0] not in ("tools", "tests")
    }
    assert listed == found
