"""``python -m tools.breadth DIR``: families of architectures, quantized, against stock, with fixed and with open batch.

A family, a quantizer, a type of floats and a line in DIR/results.jsonl at a time, each in a process of its own; what has
a line is not done again, and what is quantized is not quantized again. Every family by NNCF's default, one in ten by five
more, with floats in f32, and then in the CPU's default where that is another. A run is flagged where ovlpt loses int8
layers, runs more layers, is 1 dB below stock (under 80 dB), or fails where stock does not; `EXPECTED` names what may, and
why. Exit status 1 where one is flagged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.breadth.expected import reasons, unexpected
from tools.breadth.families import FAMILIES
from tools.breadth.plan import FLOATS, WAYS, flags, plan

LIMIT = 900  # seconds for one


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.breadth", description=sys.modules[__name__].__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where results.jsonl lies or is written")
    parser.add_argument("names", nargs="*", metavar="NAME", help="families; all by default")
    parser.add_argument("--again", action="store_true", help="measure again, also what has a line")
    parser.add_argument("--report", action="store_true", help="say what there is, and do nothing more")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into a document")
    parser.add_argument("--floats", choices=("f32", "default"), help="in this type alone; both by default")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "QUANTIZER", "FLOATS"), help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args(arguments)  # families after an option are families
    if options.one:
        warnings.simplefilter("ignore")
        from tools.breadth.one import run

        print(json.dumps(run(options.folder, *options.one)), flush=True)
        return 0
    if unknown := [name for name in options.names if name not in FAMILIES]:
        print(f"no family is called {', '.join(unknown)}; there are {', '.join(FAMILIES)}", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "results.jsonl"
    written = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    lines = list({key(line): line for line in written}.values())  # the last of each
    done = set() if options.again else set(map(key, lines))
    for asked in () if options.report else plan(options.names or list(FAMILIES), types(options.floats)):
        if asked in done:
            continue
        line = {**apart(options.folder, *asked), "commit": commit()}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        lines = [*(each for each in lines if key(each) != key(line)), line]
        print(sentence(line), flush=True)
    chosen = [line for line in lines if not options.names or line["family"] in options.names]
    if options.markdown:
        from tools.breadth.document import document, kept

        before = options.markdown.read_text() if options.markdown.exists() else ""
        options.markdown.write_text(document(chosen) + kept(before))
    return summary(chosen)


def types(asked: str | None) -> list[str]:
    """In which types floats are computed: f32 and this CPU's default, or of these what is ``asked`` for."""
    from ovlpt.device.compile import default_precision
    from ovlpt.openvino_api import Core

    named = {"f32": FLOATS, "default": default_precision(Core(), "CPU")}
    return list(dict.fromkeys(named.values())) if asked is None else [named[asked]]


def commit() -> str:
    """Of the checkout that is measured; nothing outside of one."""
    run = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True
    )
    return run.stdout.strip()


def key(line: dict[str, Any]) -> tuple[str, str, str]:
    """What a line is about: family, quantizer and the type of floats."""
    return line["family"], line["quantizer"], line.get("floats", FLOATS)


def apart(folder: Path, name: str, quantizer: str, floats: str) -> dict[str, Any]:
    """The line of one, from a process that a crash or the limit ends alone."""
    command = [sys.executable, "-m", "tools.breadth", str(folder), "--one", name, quantizer, floats]
    about = {"family": name, "quantizer": quantizer, "floats": floats}
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {**about, "failure": f"took longer than {LIMIT} s"}
    if run.returncode:
        last = next(iter(run.stderr.strip().splitlines()[-1:]), "")
        return {**about, "failure": f"the process ended with {run.returncode}: {last[:200]}"}
    return json.loads(run.stdout.splitlines()[-1])


def sentence(line: dict[str, Any]) -> str:
    """A line about one."""
    head = " ".join(key(line))
    if "failure" in line:
        return f"{head}: not built ({line['failure'][:120]})"
    said = []
    for way in WAYS:
        stock, mine = (line[way].get(each, {}) for each in ("stock", "ovlpt"))
        if "decibels" in stock and "decibels" in mine:
            said.append(
                f"{way} {mine['int8']}/{mine['weighted']} int8 ({stock['int8']}), {mine['executed']} layers "
                f"({stock['executed']}), {mine['decibels']:.1f} dB ({stock['decibels']:.1f})"
            )
        elif "failure" in line[way]:
            said.append(f"{way} {line[way]['failure'][:90]}")
        else:
            who, failure = ("stock", stock["failure"]) if "failure" in stock else ("ovlpt", mine["failure"])
            said.append(f"{way} {who} throws: {failure[:90]}")
    found = flags(line)
    more = "".join(f"; {way}: {text}" for way in WAYS if f"{way} layers" in found and (text := additional(line[way])))
    return f"{head}: {'; '.join(said)}" + (f"  FLAGGED {', '.join(found)}{more}" if found else "")


def additional(measured: dict[str, Any]) -> str:
    """Of which types there are more layers, or fewer, than in stock: "+2 Convert, -1 Eltwise"."""
    mine, stock = (Counter(measured[name].get("types", {})) for name in ("ovlpt", "stock"))
    mine.subtract(stock)
    return ", ".join(f"{count:+} {name}" for name, count in mine.most_common() if count)


def summary(lines: Sequence[dict[str, Any]]) -> int:
    """Print what is flagged and how much is not; 1 where something is that is not expected."""
    built = [line for line in lines if "failure" not in line]
    found = {key(line): flags(line) for line in built}
    for line in built:
        if found[key(line)]:
            print(sentence(line) + "".join(f"  (expected: {reason})" for reason in reasons(line)))
    clean = sum(not each for each in found.values())
    print(f"{clean} of {len(built)} without a flag; {len(lines) - len(built)} could not be built")
    return int(any(unexpected(line) for line in built))


if __name__ == "__main__":
    sys.exit(main())
