"""Changes that are previewed before they are made: each family of them is a dict from `what` to the change's reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from access.plans import apply, blast_radius, plan
from access.plans.apply import Moved
from access.plans.desired import Change
from authz.actor import Actor
from authz.services import directory
from frontend import toasts
from frontend.page_decorators import local_path
from metalake.errors import Forbidden, Invalid, MetalakeError, NotFound
from metalake.lineage import Located
from metalake.rest.exceptions import shape_of

Asked = dict[str, str]
_PLACE = re.compile(r"^changes\[\d+\]: ")
TEMPLATE = "frontend/proposal.html"


@dataclass(frozen=True)
class Proposal:
    """A change before it is made: a heading, what will happen in sentences, and the act itself.

    `done` is the sentence that is shown when it is made, on the page `after`, or where it was asked (None). What plans
    know is a plan of `changes`, with who gains and loses by it, or `nothing` is said; all else is made by `make`, and
    a sentence that it returns is shown with `done`. With `needs`, the template of a field, it is not made before that
    was filled in: its button asks again.
    """

    title: str
    says: list[str]
    button: str
    done: str
    make: Callable[[], object] | None = None
    changes: tuple[Change, ...] = ()
    after: str | None = None
    is_danger: bool = False
    lists_changes: bool = False  # shows each grant that changes, not only who gains and loses
    needs: str = ""
    nothing: str = "It is so already: nothing changes."
    undo: tuple[str, str] = ("", "")  # of what `make` does: the path and the token of the button in the toast


Reader = Callable[[HttpRequest, Actor, Located, Asked], Proposal]


class Fields(NamedTuple):
    """The fields that a refused change is shown with: their template, and their names."""

    template: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Changes that one page proposes: the reader of each `what`, which of the values that were sent it passes on, and
    the fields of those that have some.

    Readers check the caller's rights, since titles and sentences may say what only those let see.
    """

    readers: Mapping[str, Reader]
    passed_on: tuple[str, ...]
    fields: Mapping[str, Fields]

    def answer(self, request: HttpRequest, actor: Actor, target: Located) -> HttpResponse:
        """Show what a change would do, or make it (`act=apply`); a refusal is shown with all that was typed."""
        sent = request.POST if request.method == "POST" else request.GET
        asked: Asked = {name: str(value).replace("\x00", "") for name, value in sent.items()}
        asked["back"] = local_path(asked.get("back"))
        what = asked.get("what", "")
        hidden = {name: asked[name] for name in ("what", "back", *self.passed_on) if asked.get(name)}
        context: dict[str, Any] = {"target": target, "asked": asked, "hidden": hidden, "before": None}
        try:
            if what not in self.readers:
                raise Invalid("There is no such change.")
            proposal = self.readers[what](request, actor, target, asked)
            context["proposal"] = proposal
            if proposal.needs:
                return render(request, TEMPLATE, context)
            if (
                asked.get("act") == "apply"
                and request.method == "POST"
                and _make(request, actor, target, proposal, asked)
            ):
                return redirect(proposal.after or asked["back"])
            if proposal.make is None:
                context["planned"] = _plan(actor, target, proposal)
        except Forbidden:
            raise
        except MetalakeError as refusal:
            status, _, _ = shape_of(refusal)
            if isinstance(refusal, Moved) and refusal.planned:
                context |= {
                    "planned": _plan(actor, target, proposal),
                    "moved": refusal.message,
                    "before": refusal.shown,
                }
            else:
                context.pop("proposal", None)
                context |= {"refusal": _sentence(actor, target, refusal, asked), "fields": self.fields.get(what)}
                for name in context["fields"].names if context["fields"] else ():
                    hidden.pop(name, None)
            return render(request, TEMPLATE, context, status=status)
        return render(request, TEMPLATE, context)


def _sentence(actor: Actor, target: Located, refusal: MetalakeError, asked: Asked) -> str:
    """What is wrong, without its place in a list of changes, and with names like one that is nobody's."""
    message = _PLACE.sub("", refusal.message)
    name = asked.get(refusal.kind or "", "").strip()
    if not isinstance(refusal, NotFound) or refusal.kind not in ("user", "group", "role") or "Did you mean" in message:
        return message
    close = directory.close_names(actor, target.metalake.name, refusal.kind, name)
    return f"{message} {directory.did_you_mean({each: each for each in close})}" if close else message


def _plan(actor: Actor, target: Located, proposal: Proposal) -> plan.Planned:
    return plan.plan_changes(actor, target.metalake.name, proposal.changes, budget=blast_radius.PREVIEW)


def _make(request: HttpRequest, actor: Actor, target: Located, proposal: Proposal, asked: Asked) -> bool:
    """Make the change; False for a plan that was not shown yet. Raises Moved if it differs now."""
    if proposal.make is not None:
        more = proposal.make()
        path, token = proposal.undo
        says = f"{proposal.done} {more}" if isinstance(more, str) else proposal.done
        toasts.add(request, says, undo_path=path, undo_token=token)
        return True
    if not asked.get("token"):
        return False
    applied = apply.apply_plan(actor, target.metalake.name, asked["token"])
    metalake_id = target.nodes[0].id
    toasts.add_applied(request, proposal.done, metalake_id, applied.token, proposal.after or asked["back"])
    return True
