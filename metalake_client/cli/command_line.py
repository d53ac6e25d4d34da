"""How the line of a command is read: required options as words, options of all commands before it, former spellings."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from typer.core import TyperCommand

FORMER = {
    "--for-user": ("--about", "--of-user", "--to-user", "--for"),
    "--for-group": ("--of-group", "--to-group"),
    "--for-role": ("--of-role",),
}
"""Spellings that go on working and stand in no help."""
_VALUE_OF = "metalake_client.former"


class Command(TyperCommand):
    """A command whose required options may be given as words: `gcli table details lake sales orders`.

    Words are the options that are missing, in the order of the help. What all commands have may stand before it, too.
    """

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        former = {spelling: param for param in self.params for spelling in FORMER.get(param.opts[0], ())}
        for spelling, param in former.items():
            other = copy(param)
            other.opts = [spelling]
            other.add_to_parser(parser, ctx)
        read = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            ctx.meta[_VALUE_OF] = former.get(args[-1]) if args else None
            options, words, order = read(args)
            for param in self._words():
                if words and param.name not in options:
                    options[param.name] = words.pop(0)
            return dict(_before(ctx, self.params)) | options, words, order

        parser.parse_args = parse_args  # type: ignore[method-assign]
        return parser

    def _words(self) -> list[Any]:
        return [
            each for each in self.params if each.param_type_name == "option" and each.required and not each.multiple
        ]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        words = " ".join(each.opts[0].lstrip("-").upper() for each in self._words())
        return [*super().collect_usage_pieces(ctx), *([f"[{words}]"] if words else [])]

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The next word, where the shell asks for no option."""
        missing = [each for each in self._words() if ctx.params.get(each.name) is None]
        asked = ctx.meta.get(_VALUE_OF) or next(iter(missing), None)
        if incomplete.startswith("-") or asked is None:
            return list(super().shell_complete(ctx, incomplete))
        return list(asked.shell_complete(ctx, incomplete))


def _before(ctx: Any, params: list[Any]) -> Iterator[tuple[str, Any]]:
    """What stands before the command of its options; the nearest to it comes last. What it acts on is never there."""
    for above in reversed(list(_above(ctx))):
        for param in (each for each in params if not each.required):
            source = above.get_parameter_source(param.name)
            if source is not None and source.name == "COMMANDLINE":
                yield param.name, above.params[param.name]


def _above(ctx: Any) -> Iterator[Any]:
    while ctx := ctx.parent:
        yield ctx
