"""Which processes the tests of an instruction set run in."""

import itertools
from pathlib import Path
from types import SimpleNamespace

from tools import spread
from tools.levels import PARTS, parts, shares_of


def test_all_parts_by_default():
    assert parts([]) == list(PARTS)
    assert [part[-2:] for part in parts(["-k", "mean"])] == [("-k", "mean")] * len(PARTS)


def test_what_is_of_one_folder_in_a_process_of_its_own():
    lowering = ("tests/device/test_lowering.py", "tests/device/test_lowering_rules.py")
    assert parts(["-x", "tests/main", *lowering, "tests/test_fuzz.py::test_a"]) == [
        ("tests/main", "tests/test_fuzz.py::test_a", "-x"),
        (*lowering, "-x"),
    ]


def test_what_is_left_out_is_there():
    ignored = {option.removeprefix("--ignore=") for part in PARTS for option in part if option.startswith("--ignore=")}
    assert [path for path in ignored if not Path(path).exists()] == []


def test_each_test_is_in_one_share(monkeypatch):
    names = [f"tests/main/test_add.py::test_sums[{number}]" for number in range(40)]
    dropped, shares = [], []
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items)))
    for number in range(3):
        monkeypatch.setenv(spread.SHARE, f"{number}/3")
        items = [SimpleNamespace(nodeid=name) for name in names]
        spread.pytest_collection_modifyitems(config, items)
        shares.append([item.nodeid for item in items])
    assert sorted(itertools.chain(*shares)) == sorted(names)
    assert all(shares)
    assert len(dropped) == 2 * len(names)


def test_both_halves_of_all_levels_are_all_tests():
    levels = ["avx2", "avx512", "avx512_vnni"]
    assert shares_of(levels, {"--all"}) == dict.fromkeys(levels, spread.ALL)
    assert [*shares_of(levels, {"--spread"}).values()] == ["0/3", "1/3", "2/3"]
    halves = [share for half in (1, 2) for share in shares_of(levels, {f"--spread={half}/2"}).values()]
    assert sorted(halves) == [f"{number}/6" for number in range(6)]
