"""Run every notebook from its first cell to its last: ``python -m tools.notebooks [NAME …]``. Exit status 1 if one fails.

The notebooks on disk stay as they are, without outputs. Those of a real network run where the variable OVLPT_REAL names
the folder that ``python -m tools.zoo real/NAME -o FOLDER`` wrote.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
REAL = {"reading_text": "recognizer"}  # the network of a notebook, where it is not the bundled one


def run(path: Path) -> str | None:
    """What went wrong; None when every cell ran."""
    notebook = nbformat.read(path, as_version=4)
    try:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    except CellExecutionError as error:
        return str(error)
    return None


def has_network(name: str) -> bool:
    return name not in REAL or Path(os.environ.get("OVLPT_REAL", ""), REAL[name], "default.xml").exists()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__.splitlines()[0])
    names = [path.stem for path in NOTEBOOKS]
    parser.add_argument(
        "names", nargs="*", choices=[[], *names], metavar="NAME", help=f"of {', '.join(names)}; default: all"
    )
    chosen = parser.parse_args().names or names
    failed = 0
    for path in NOTEBOOKS:
        if path.stem in chosen and not has_network(path.stem):
            print(f"{path.stem}: not run, as OVLPT_REAL names no folder with the network {REAL[path.stem]}", flush=True)
        elif path.stem in chosen:
            start = time.perf_counter()
            error = run(path)
            failed += error is not None
            print(f"{path.stem}: {error or 'ran'} ({time.perf_counter() - start:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
