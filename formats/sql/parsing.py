"""Parses SQL as a single query; errors have line and column."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from formats.sql.dialects import SqlDialect
from formats.sql.results import Problem, quote

MOST_TOKENS = 50_000  # the longest query of TPC-DS has 2,000

TOO_DEEP = "It is nested too deeply to be read here."
NO_QUERY = "It is no query: a view's SQL begins with SELECT, WITH, VALUES or the like."
NO_COLUMNS = "It selects no columns."
SEVERAL = "There is more than one statement; a view has one query."

_MISSING = re.compile(r"Missing (\S+) from \d+:(\d+)")


class Unreadable(Exception):
    """The SQL cannot be parsed as a single query; has the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def parse(sql: str, dialect: SqlDialect) -> exp.Query:
    """Parse a single query. Raises Unreadable, RecursionError."""
    rules = dialect.rules
    try:
        tokens = rules.tokenize(sql)
        if len(tokens) > MOST_TOKENS:
            most = f"{MOST_TOKENS:,}"
            raise Unreadable(Problem(f"It has {len(tokens):,} words and signs; more than {most} are not read here."))
        statements = [each for each in rules.parser().parse(tokens, sql) if each is not None]
    except TokenError as error:
        raise Unreadable(_of_token(sql, error)) from error
    except ParseError as error:
        raise Unreadable(_of_parse(error)) from error
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:  # bugs of the parser
        raise Unreadable(Problem("It cannot be read here.")) from error
    if len(statements) > 1:
        raise Unreadable(Problem(SEVERAL))
    query = statements[0] if statements else None
    if isinstance(query, exp.Values):
        query = exp.select("*").from_(query)
    if not isinstance(query, exp.Query):
        raise Unreadable(Problem(NO_QUERY))
    if not query.selects:
        raise Unreadable(Problem(NO_COLUMNS))
    return query


def place_of(sql: str, offset: int) -> tuple[int, int]:
    """The line and column of a character offset, both from 1."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _of_token(sql: str, error: TokenError) -> Problem:
    if missing := _MISSING.match(str(error.__cause__)):
        return Problem(f"What begins with {quote(missing[1])} here has no end.", *place_of(sql, int(missing[2])))
    return Problem("A text, a name or a comment in it has no end.")


def _of_parse(error: ParseError) -> Problem:
    """The first error, reworded: sqlglot's texts name its classes, and its column is the end of the token."""
    first = error.errors[0] if error.errors else {}
    word, description = str(first.get("highlight") or ""), str(first.get("description") or "")
    line, end = first.get("line"), first.get("col")
    column = max(1, end - len(word) + 1) if end else None
    here = quote(word) if word else "the end"
    if description.startswith("Expecting "):
        return Problem(f"{quote(description.removeprefix('Expecting '))} is expected at {here}.", line, column)
    if description.startswith("Required keyword"):
        return Problem(f"Something is missing at {here}.", line, column)
    return Problem(f"{here} is not expected.", line, column)
