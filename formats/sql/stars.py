"""The `*` of a query over whole sources, whose columns need not be known."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from formats.sql.results import Star
from formats.sql.tables import place_of

MOST_LEFT_OUT = 100  # columns; a `*` that excludes more is not reported

_Visited = set[tuple[int, frozenset[str]]]


def stars_of(whole: exp.Query) -> tuple[Star, ...]:
    """The sources whose columns a `qualified` query returns in full under their own names, less excluded ones."""
    scope, left_out = build_scope(whole), dict[int, frozenset[str]]()
    for place, but in _stars(scope, frozenset(), set()) if scope else ():
        left_out[place] = left_out.get(place, but) & but
    return tuple(Star(place, tuple(sorted(but))) for place, but in left_out.items())


def without_stars(query: exp.Query) -> exp.Query | None:
    """The query with only the columns that it lists next to `*`; None if there are none."""
    named = [each for each in query.selects if not each.is_star]
    if not named or not isinstance(query, exp.Select):
        return None
    query = query.copy()
    query.set("expressions", [each for each in query.selects if not each.is_star])
    return query


def _stars(scope: Scope, but: frozenset[str], visited: _Visited) -> Iterator[tuple[int, frozenset[str]]]:
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]  # the first branch names the columns
    if (id(scope), but) in visited or scope.pivots or not isinstance(scope.expression, exp.Select):
        return
    visited.add((id(scope), but))
    for select in scope.expression.selects:
        star = select.this if isinstance(select, exp.Column) else select
        if not isinstance(star, exp.Star) or star.args.get("ilike"):
            continue
        less = but | _left_out(star)
        if len(less) > MOST_LEFT_OUT:
            continue
        for name in scope.selected_sources if star is select else [select.text("table")]:
            _, source = scope.selected_sources.get(name, (None, None))
            if isinstance(source, Scope):
                yield from _stars(source, less, visited)
            elif source is not None and (place := place_of(source)) is not None:
                yield place, less


def _left_out(star: exp.Star) -> set[str]:
    """The columns that a `*` excludes, replaces or renames, casefolded."""
    names = {each.name for each in star.args.get("except_") or ()}
    names |= {each.alias for each in star.args.get("replace") or ()}
    names |= {each.this.name for each in star.args.get("rename") or ()}
    return {name.casefold() for name in names}
