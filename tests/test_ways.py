"""Which cases of a test are run."""

import itertools

import pytest

from tests.ways import chosen

FORMS, THREADS = ("in memory", "saved", "own LPT"), (1, 2)
GRAPHS = {"shape": (1, -1), "low": (0.0, -1.0), "after": ("relu", "sum", "pool")}


def cases(**parameters) -> list[dict]:
    return [dict(zip(parameters, values, strict=True)) for values in itertools.product(*parameters.values())]


def kept(all_cases: list[dict], turn: int = 0) -> list[dict]:
    return [all_cases[number] for number in chosen(all_cases, turn)]


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("ways", [{"form": FORMS}, {"threads": THREADS}, {"form": FORMS, "threads": THREADS}], ids=str)
def test_each_graph_and_each_value_in_each_way(ways, turn):
    found = kept(every := cases(**GRAPHS, **ways), turn)
    assert len(found) < 0.7 * len(every)
    assert {tuple(case[name] for name in GRAPHS) for case in found} == set(itertools.product(*GRAPHS.values()))
    for way, name in itertools.product(ways, {**GRAPHS, **ways}):
        assert {(case[way], case[name]) for case in found} == {(case[way], case[name]) for case in every}


def test_what_one_run_leaves_out_is_in_the_next():
    by_threads = cases(**GRAPHS, threads=THREADS)
    assert sorted(chosen(by_threads, 0) + chosen(by_threads, 1)) == [*range(len(by_threads))]
    by_form = cases(**GRAPHS, form=FORMS)
    by_turn = itertools.chain.from_iterable(chosen(by_form, turn) for turn in range(3))
    assert sorted(by_turn) == [*range(len(by_form))]


def test_two_values_together_are_run_in_each_way():
    """Not one value of the last parameter in one way, and the other in the other."""
    every = cases(first=(1, 2), second=(3, 4), last=(5, 6), how=("transform", "pipeline"))
    for one, other in itertools.combinations(("first", "second", "last"), 2):
        assert len({(case[one], case[other], case["how"]) for case in kept(every)}) == 8


def test_what_is_no_product_is_run_whole():
    assert len(kept(cases(form=FORMS))) == len(FORMS)
    assert len(kept(cases(form=FORMS, case=("a", "b", "c", "d")))) == len(FORMS) * 4
    alone = {"shape": 1, "low": -1.0, "after": "sum", "form": "saved"}
    assert kept([alone]) == [alone]
