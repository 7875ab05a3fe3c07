"""Which processes the tests of an instruction set run in."""

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from ovlpt.device.instruction_sets import Limits
from tools import spread
from tools.levels import PARTS, parts, shares_of, with_other_kernels


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


def test_all_parts_of_all_levels_are_all_tests():
    levels = ["avx2", "avx512", "avx512_vnni"]
    assert shares_of(levels, {"--all"}) == dict.fromkeys(levels, spread.ALL)
    assert [*shares_of(levels, {"--spread"}).values()] == ["0/3", "1/3", "2/3"]
    for count in (2, 3):
        parts = [shares_of(levels, {f"--spread={part}/{count}", "--all"}) for part in range(1, count + 1)]
        shares = [share for part in parts for share in part.values()]
        assert sorted(shares, key=lambda each: int(each.split("/")[0])) == [
            f"{at}/{3 * count}" for at in range(3 * count)
        ]


def test_levels_that_differ_from_the_cpu_in_types_of_floats_alone():
    kernels = {"avx2": "jit_avx2_I8", "avx512": "jit_avx512_I8", "avx512_vnni": "brgconv_avx512_I8"}
    below = {isa: Limits(isa, isa, kernel, ()) for isa, kernel in kernels.items()}
    own = Limits("own", "with bf16", "brgconv_avx512_I8", ("BF16",))
    assert [*with_other_kernels(below, own)] == ["avx2", "avx512"]
    assert [*with_other_kernels(below, replace(own, kernel="brgconv_avx512_amx_I8"))] == [*kernels]
