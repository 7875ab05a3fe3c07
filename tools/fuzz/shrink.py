"""From a failing graph to a small one that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tools.fuzz.graphs import Graph, Step, pruned


def shrink(graph: Graph, fails: Callable[[Graph], bool], rounds: int = 200) -> Graph:
    """Try smaller graphs as long as one of them still ``fails``."""
    while rounds > 0:
        for candidate in _smaller(graph):
            rounds -= 1
            if rounds <= 0 or fails(candidate):
                break
        else:
            return graph
        if rounds > 0:
            graph = candidate
    return graph


def _smaller(graph: Graph) -> Iterator[Graph]:
    """A plainer form, fewer results, shorter tails, steps left out or cut off from what is above them."""
    for form in (replace(graph.form, precision="f32"), replace(graph.form, dynamic="")):
        if form != graph.form:
            yield replace(graph, form=form)
    if len(graph.results) > 1:
        for one in graph.results:
            yield pruned(replace(graph, results=(one,)))
        for number in range(len(graph.results)):
            yield pruned(replace(graph, results=graph.results[:number] + graph.results[number + 1 :]))
    for number, (index, _) in enumerate(graph.results):
        for source in graph.steps[index].sources:
            if graph.steps[source[0]].kind != "Parameter":
                results = (*graph.results[:number], source, *graph.results[number + 1 :])
                yield pruned(replace(graph, results=results))
    for index in range(len(graph.steps) - 1, -1, -1):
        step = graph.steps[index]
        if step.kind == "Parameter" or any(index == other for other, _ in graph.results):
            continue
        single = all(port == 0 for each in graph.steps for other, port in each.sources if other == index)
        for source in step.sources:
            if single and source[1] == 0 and graph.steps[source[0]].shape == step.shape:
                yield pruned(_redirected(graph, index, source))
        if single:
            steps = list(graph.steps)
            steps[index] = Step("Parameter", (), step.seed, step.shape)
            yield pruned(replace(graph, steps=tuple(steps)))


def _redirected(graph: Graph, index: int, source: tuple[int, int]) -> Graph:
    def redirected(step: Step) -> Step:
        return replace(step, sources=tuple(source if value == (index, 0) else value for value in step.sources))

    return replace(graph, steps=tuple(map(redirected, graph.steps)))
