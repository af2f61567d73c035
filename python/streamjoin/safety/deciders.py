"""Three ways to decide the same question: does a stream reach every other one?

    by definition    grow R from {i}: add s if a scheme of s has every column joined with R, or by a window
    by GPG           the same along the edges of the generalized punctuation graph, each a choice of sources
    by TPG           merge strongly connected nodes into one, again and again; safe iff one node is left

The state of i is purgeable iff R becomes everything; the query is safe iff every state is. R includes the
start itself and goes on growing along plain edges after a generalized one has fired. The first is the
meaning, the others are judged by it; `reached_sets` is what the check uses. All polynomial, but for the edges
of the GPG: their number is exponential in the columns of one scheme.
"""

from __future__ import annotations

from streamjoin.safety.graphs import JoinGraph, members


def reach(graph: JoinGraph, start: int, *, among: int | None = None) -> int:
    """Return the streams that are reached from the set `start`, looking at the streams `among` alone.

    The definition: schemes and windows are tried until none adds a stream.
    """
    among = graph.everything if among is None else among
    schemes = [scheme for scheme in graph.schemes if among >> scheme.stream & 1]
    windows = [(i, graph.window_targets[i]) for i in members(among)]
    reached, before = start, 0
    while reached != before:
        before = reached
        for i, targets in windows:
            if reached >> i & 1:
                reached |= targets & among
        for scheme in schemes:
            if not reached >> scheme.stream & 1 and scheme.covered_by(reached):
                reached |= 1 << scheme.stream
    return reached


def is_safe_by_definition(graph: JoinGraph, among: int | None = None) -> bool:
    """Tell whether every stream reaches all the others, trying each stream as a start."""
    among = graph.everything if among is None else among
    return all(reach(graph, 1 << i, among=among) == among for i in members(among))


def is_safe_by_edges(graph: JoinGraph) -> bool:
    """Tell the same by the generalized punctuation graph."""
    edges = graph.edges()
    for i in range(len(graph.names)):
        reached = 1 << i
        while more := [edge.target for edge in edges if _fires(edge.sources, edge.target, reached)]:
            reached |= 1 << more[0]
        if reached != graph.everything:
            return False
    return True


def is_safe_by_merging(graph: JoinGraph) -> bool:
    """Tell the same by the transformed punctuation graph."""
    return len(merge_rounds(graph)[-1]) == 1


def merge_rounds(graph: JoinGraph) -> tuple[tuple[int, ...], ...]:
    """Return the nodes of the transformed punctuation graph, as sets of streams, round by round.

    The first round holds the streams one by one, the last the nodes that nothing merges any more.
    """
    rounds = [tuple(1 << i for i in range(len(graph.names)))]
    while len(rounds[-1]) > 1:
        merged = merge_components(rounds[-1], edges_between(graph, rounds[-1]))
        if len(merged) == len(rounds[-1]):
            break
        rounds.append(merged)
    return tuple(rounds)


def merge_on(graph: JoinGraph, nodes: tuple[int, ...], edges: list[int]) -> tuple[int, ...]:
    """Return what nodes that are known to merge, and have these edges, merge into in the end."""
    while len(merged := merge_components(nodes, edges)) < len(nodes):
        if len(merged) == 1:
            return merged
        nodes, edges = merged, edges_between(graph, merged)
    return nodes


def reached_sets(graph: JoinGraph) -> tuple[int, ...]:
    """Return for each stream the set it reaches. Streams merged into one node reach the same."""
    found = [0] * len(graph.names)
    for node in merge_rounds(graph)[-1]:
        reached = node if node == graph.everything else reach(graph, node)
        for i in members(node):
            found[i] = reached
    return tuple(found)


def _fires(sources: int, target: int, reached: int) -> bool:
    return sources & reached == sources and not reached >> target & 1


def edges_between(graph: JoinGraph, nodes: tuple[int, ...]) -> list[int]:
    """Return for each node the set of nodes (by position) that it has an edge to."""
    node_of = {i: position for position, node in enumerate(nodes) for i in members(node)}
    targets = [0] * len(nodes)
    for scheme in graph.schemes:
        target = 1 << node_of[scheme.stream]
        few = scheme.partners[0]
        if len(scheme.partners) > 1:
            few = min(scheme.partners, key=int.bit_count)
        # Candidates are the nodes that the column with the fewest partners joins, or all, if these are fewer.
        joined = few.bit_count() < len(nodes)
        for source in {node_of[i] for i in members(few)} if joined else range(len(nodes)):
            if not target >> source & 1 and scheme.covered_by(nodes[source]):
                targets[source] |= target
    for i, reachable in enumerate(graph.window_targets):
        for j in members(reachable):
            targets[node_of[i]] |= 1 << node_of[j]
    return [edges & ~(1 << position) for position, edges in enumerate(targets)]


def merge_components(nodes: tuple[int, ...], targets: list[int]) -> tuple[int, ...]:
    """Merge the nodes of each strongly connected component (two walks: forth, and back by closing order)."""
    back = [0] * len(nodes)
    for source, edges in enumerate(targets):
        for target in members(edges):
            back[target] |= 1 << source
    order: list[int] = []
    unseen = (1 << len(nodes)) - 1
    for start in range(len(nodes)):
        if unseen >> start & 1:
            unseen = _walk(start, targets, unseen, order)
    merged, unseen = [], (1 << len(nodes)) - 1
    for start in reversed(order):
        if unseen >> start & 1:
            component: list[int] = []
            unseen = _walk(start, back, unseen, component)
            merged.append(sum(nodes[position] for position in component))
    return tuple(sorted(merged, key=lambda node: node & -node))


def _walk(start: int, targets: list[int], unseen: int, closed: list[int]) -> int:
    """Walk depth first from `start`; append nodes as they are left; return what is unseen."""
    unseen &= ~(1 << start)
    path = [start]
    while path:
        ahead = targets[path[-1]] & unseen
        if ahead:
            lowest = ahead & -ahead
            unseen ^= lowest
            path.append(lowest.bit_length() - 1)
        else:
            closed.append(path.pop())
    return unseen
