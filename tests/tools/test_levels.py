"""Which processes the tests of an instruction set run in."""

from tools.levels import PARTS, parts


def test_all_parts_by_default():
    assert parts([]) == list(PARTS)
    assert [part[-2:] for part in parts(["-k", "mean"])] == [("-k", "mean")] * len(PARTS)


def test_each_path_in_a_process_of_its_own():
    assert parts(["-x", "tests/main", "tests/test_fuzz.py::test_a"]) == [
        ("tests/main", "-x"),
        ("tests/test_fuzz.py::test_a", "-x"),
    ]
