"""The punctuation graph as text and in the dot language.

auction -> bid            by punctuations on (item_id)
{bid, person} -> auction  by punctuations on (item_id, seller)
bid => auction            by time, 5 s
"""

from __future__ import annotations

from streamjoin.durations import format_duration
from streamjoin.safety.graphs import Edge, JoinGraph, members


def edge_label(edge: Edge) -> str:
    """Return what makes the edge: the scheme's columns, or the width of the window."""
    return str(edge.scheme) if edge.scheme is not None else format_duration(edge.width or 0)


def graph_text(graph: JoinGraph) -> str:
    """Return the generalized punctuation graph, an edge a line."""
    rows = []
    for edge in graph.edges():
        sources = graph.shown(edge.sources)
        source = sources if edge.is_plain else f"{{{sources}}}"
        arrow = "=>" if edge.scheme is None else "->"
        means = "by time" if edge.scheme is None else "by punctuations on"
        rows.append((f"{source} {arrow} {graph.names[edge.target]}", f"{means} {edge_label(edge)}"))
    width = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"{left.ljust(width)}  {right}" for left, right in rows) or "no edges"


def graph_dot(graph: JoinGraph, reached: tuple[int, ...]) -> str:
    """Return the graph in dot: growing states are red, window edges dashed, diamonds generalized edges."""
    lines = ["digraph streamjoin {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for i, name in enumerate(graph.names):
        grows = reached[i] != graph.everything
        colours = 'fillcolor="#fde8e4", color="#c0392b"' if grows else 'fillcolor="#e3f1ee", color="#1f7a6d"'
        missing = f", tooltip={_quoted('does not reach ' + _missing(graph, reached[i]))}" if grows else ""
        lines.append(f"  {_quoted(name)} [{colours}{missing}];")
    linked = set()
    for number, edge in enumerate(graph.edges()):
        target, label = _quoted(graph.names[edge.target]), _quoted(edge_label(edge))
        linked |= {frozenset((i, edge.target)) for i in members(edge.sources)}
        if edge.is_plain:
            source = _quoted(graph.names[edge.sources.bit_length() - 1])
            style = ", style=dashed" if edge.scheme is None else ""
            lines.append(f"  {source} -> {target} [label={label}{style}];")
            continue
        middle = f"all_of_{number}"
        lines.append(f'  {middle} [shape=diamond, style=solid, label="", width=0.2, height=0.2];')
        lines += [f"  {_quoted(graph.names[i])} -> {middle} [arrowhead=none];" for i in members(edge.sources)]
        lines.append(f"  {middle} -> {target} [label={label}];")
    place = {name: i for i, name in enumerate(graph.names)}
    for left, right in graph.join_edges():
        if frozenset((place[left.stream], place[right.stream])) not in linked:
            ends = f"{_quoted(left.stream)} -> {_quoted(right.stream)}"
            label = _quoted(f"{left.column} = {right.column}")
            lines.append(f'  {ends} [label={label}, dir=none, style=dotted, color="#8a8f98"];')
    return "\n".join([*lines, "}"])


def _missing(graph: JoinGraph, reached: int) -> str:
    return graph.shown(graph.everything & ~reached)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
