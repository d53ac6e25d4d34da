"""An object's access tab: every access path, whose it is and whether it is effective, and a download of the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from access.explain import reach, ways
from access.explain.permissions import reads_access
from access.explain.queries import Whom
from access.explain.ways import AccessPath, Holder, Named, Narrowed
from authz import policy
from authz.actor import Actor
from authz.callers.enumeration import LISTING
from authz.services.authority import may_give, may_lift
from frontend import tabs
from frontend.confusables import spelled
from frontend.csv_files import download
from frontend.deep_links import grant_page, removal_page, revoke_page
from frontend.forms.access import AccessForm, askable
from frontend.forms.matrix import OFFERED
from frontend.page_decorators import is_partial, signed_in
from frontend.timeline import changes_url
from metalake.errors import Invalid, NotFound
from metalake.full_names import dotted
from metalake.kinds import grantable_on
from metalake.levels import Level
from metalake.lineage import Located
from metalake.privileges import Privilege
from metalake.rest.exceptions import shape_of
from metalake.wire import written

NAME = "access"
PAGE, WAYS = 25, 10  # people, and the ways of each
HEADER = (
    "user", "group", "role", "privilege", "effect", "on_type", "on", "direct", "owner", "verdict", "reason",
    "granted_by", "granted_at", "starts_at", "ends_at",
)  # fmt: skip


class Link(NamedTuple):
    url: str
    label: str


class Fold(NamedTuple):
    """A user, group or role with the rows of their first ways, and links to their page, all their ways and their
    removal."""

    holder: Holder
    rows: list[Row]
    url: str
    all_url: str
    removals: list[Link]

    @property
    def groups(self) -> list[str]:
        """The groups that the ways come through, each once."""
        return sorted({row.way.group.name for row in self.rows if row.way.group})

    @property
    def is_direct(self) -> bool:
        return any(row.way.group is None for row in self.rows)


class Row(NamedTuple):
    """A way, with links: to its object, its reason, its removal, and what fixes it."""

    way: AccessPath
    group_url: str = ""
    role_url: str = ""
    edit_url: str = ""
    on_url: str = ""
    why_url: str = ""
    revoke_url: str = ""
    removal: Link | None = None
    mending: tuple[Link, ...] = ()
    above: tuple[Any, ...] = ()  # the rows of what the same person owns above it


@require_safe
@signed_in
def show_access(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """Who has ways to the object, 25 a page; for whoever may not read everybody's, their own."""
    target = tabs.locate(actor, object_id, NAME)
    form = AccessForm(request.GET, target)
    context: dict[str, Any] = {"form": form, "by": form.sort, "query": form.query()}
    status = 200
    if form.is_valid():
        try:
            context |= _page(actor, target, form, request.GET.get("after", ""))
        except (Invalid, NotFound) as refusal:
            form.add_error(None, refusal.message)
            status, _, _ = shape_of(refusal)
    else:
        status = 422
    context |= {
        "target": target,
        "on": _spoken(target),
        "columns": [each for each in askable(target) if each in OFFERED],
    }
    if is_partial(request) and request.htmx.target == "ways":  # type: ignore[attr-defined]
        return render(request, "frontend/access/ways.html", context | {"node": target.node}, status=status)
    matrix = reverse("frontend:matrix", args=[target.metalake.id])
    context["matrix_url"] = f"{matrix}?{urlencode({'on': _spoken(target)})}"
    context["standing"] = reach.standing(actor, target)
    if reads_access(actor, target):
        context["changes_url"] = changes_url(target, NAME, request.GET)
        context["compare_url"] = reverse("frontend:compare", args=[target.id])
    return tabs.show(request, actor, target, NAME, context, status=status)


@require_safe
@signed_in
def download_access(request: HttpRequest, actor: Actor, object_id: int) -> Any:
    """All ways that the same query shows, as a file. Raises Invalid for a query that shows none."""
    target = tabs.locate(actor, object_id, NAME)
    form = AccessForm(request.GET, target)
    if not form.is_valid():
        raise Invalid(" ".join(f"{name}: {error}" for name, errors in form.errors.items() for error in errors))
    every = ways.every_way(actor, *_asked(target, form), narrowed=_narrowed(form))
    return download(f"access-{target.name}", HEADER, map(_cells, every))


def _spoken(target: Located) -> str:
    """The object as a line of a matrix."""
    return f"{target.kind} {dotted(target.full_name)}"


def _asked(target: Located, form: AccessForm) -> tuple[Any, ...]:
    return target.metalake.name, target, form.cleaned_data["asOf"]


def _narrowed(form: AccessForm) -> Narrowed:
    asked = form.cleaned_data
    privilege = Privilege(asked["privilege"]) if asked["privilege"] else None
    level = Level(asked["can"]) if asked["can"] else None
    return Narrowed(asked["by"], asked["show"] or None, privilege, q=asked["q"], level=level)


def _page(actor: Actor, target: Located, form: AccessForm, after: str) -> dict[str, Any]:
    """The context of one page. Raises the service's errors."""
    page = ways.holders_in(
        actor, *_asked(target, form), narrowed=_narrowed(form), after=after, limit=PAGE, most_ways=WAYS
    )
    as_of = form.cleaned_data["asOf"]
    links = Links(actor, target, as_of and written(as_of))
    return {
        "page": page,
        "folds": [_fold(links, holder, form) for holder in page.holders],
        "as_of": as_of,
        "former_name": dotted(page.target.full_name) if page.target.full_name != target.full_name else "",
        "after": after,
        "next_query": page.next and form.query(after=page.next),
    }


def _fold(links: Links, holder: Holder, form: AccessForm) -> Fold:
    rows = [links.row(way) for way in holder.ways]
    removals = list(dict.fromkeys(row.removal for row in rows if row.removal))
    query = form.query(q=holder.whom.name, after="")
    return Fold(holder, _edits_once(folded(rows)), links.of_person(form.sort, holder.whom), query, removals)


def folded(rows: Iterable[Row]) -> list[Row]:
    """The rows, with one person's ownership of several ancestors folded: an owner of the top often owns all below."""
    shown: list[Row] = []
    for row in rows:
        if shown and row.way.owner and _whose(row) == _whose(shown[-1]):
            shown[-1] = shown[-1]._replace(above=(*shown[-1].above, row))
        else:
            shown.append(row)
    return shown


def _edits_once(rows: Iterable[Row]) -> list[Row]:
    """The rows, with the edit of a role on its first one alone."""
    seen: set[str] = set()
    shown: list[Row] = []
    for row in rows:
        shown.append(row._replace(edit_url="") if row.edit_url in seen else row)
        seen.add(row.edit_url)
    return shown


def _whose(row: Row) -> tuple[Any, ...]:
    return row.way.owner, row.way.user, row.way.group


class Links(NamedTuple):
    """Where the ways to an object lead. `as_of` is the moment of the question as text, None for now."""

    actor: Actor
    target: Located
    as_of: str | None

    def row(self, way: AccessPath) -> Row:
        mending = () if self.as_of else tuple(self._mending(way))
        return Row(
            way,
            group_url=self.of_person("group", way.group),
            role_url=self.of_person("role", way.role),
            edit_url=self._edit(way),
            on_url=self._on(way),
            why_url=self._why(way),
            revoke_url=self._revoke(way),
            removal=self._removal(way),
            mending=mending,
        )

    def of_person(self, sort: str, named: Named | None) -> str:
        """The page of a user, group or role of today, where the reader may list all of them or it is their own."""
        actor, top = self.actor, self.target.top
        own = {"user": (actor.id,), "group": actor.groups, "role": actor.roles}
        if named is None or self.as_of or not (named.id in own[sort] or policy.permits(actor, LISTING[sort], top)):
            return ""
        return reverse(f"frontend:{sort}", args=[top.id, named.id])

    def _edit(self, way: AccessPath) -> str:
        """The page that edits the role, with the object of this grant open, if the reader may grant there."""
        if way.on is None or way.role is None or way.privilege is None or not self.of_person("role", way.role):
            return ""
        if not may_give(self.actor, way.on, way.privilege):
            return ""
        opened = urlencode({"open": f"{way.on.kind} {dotted(way.on.full_name)}"})
        return f"{reverse('frontend:edit-role', args=[self.target.top.id, way.role.id])}?{opened}"

    def _on(self, way: AccessPath) -> str:
        """The object above that the grant is on, if it is still above today."""
        if way.on is None or way.is_direct or all(node.id != way.on.id for node in self.target.nodes):
            return ""
        return reverse("frontend:access", args=[way.on.id])

    def _why(self, way: AccessPath) -> str:
        """The reason for the privilege, asked on the nearest object that it means something on."""
        if way.user is None:
            return ""
        privilege = way.privilege or Privilege.MANAGE_GRANTS
        on = next(node for node in reversed(self.target.nodes) if node.kind in grantable_on(privilege))
        query = {"user": way.user.name, "privilege": privilege.value} | ({"asOf": self.as_of} if self.as_of else {})
        return f"{reverse('frontend:why', args=[on.id])}?{urlencode(query)}"

    def _mending(self, way: AccessPath) -> list[Link]:
        """The filled pages of the grants that a broken way lacks, where the reader may give them."""
        whom = _whom(way)
        return [
            Link(grant_page(missing.on.id, whom, missing.privilege), f"Grant {missing.privilege}")
            for missing in way.missing
            if whom and missing.on and not missing.is_denied and may_give(self.actor, missing.on, missing.privilege)
        ]

    def _revoke(self, way: AccessPath) -> str:
        """The page that revokes this grant, if the reader may."""
        if self.as_of or way.on is None or way.role is None or way.privilege is None:
            return ""
        may = may_lift(self.actor, way.on) if way.is_deny else may_give(self.actor, way.on, way.privilege)
        return revoke_page(way.on.id, way.role.name, way.privilege, way.effect) if may else ""

    def _removal(self, way: AccessPath) -> Link | None:
        """The page that removes all access of the way's group, else person, here, or lifts this DENY."""
        whom = Whom("group", way.group.name) if way.group else _whom(way)
        if self.as_of or whom is None or way.role is None or not reads_access(self.actor, self.target):
            return None
        lift = {"effect": way.effect.value, "role": way.role.name} if way.is_deny else {}
        act = f"Lift the DENY of {spelled(way.role.name)}" if way.is_deny else "Take all away"
        label = f"{act} {'for' if way.is_deny else 'from'} {whom.sort} {spelled(whom.name)}"
        return Link(removal_page(self.target.metalake.id, whom, self.target, **lift), label)


def _whom(way: AccessPath) -> Whom | None:
    sorts = (("user", way.user), ("group", way.group))
    return next((Whom(sort, named.name) for sort, named in sorts if named), None)


def _cells(way: AccessPath) -> tuple[Any, ...]:
    """A line of the file, in the order of HEADER."""
    on = way.on
    names = [named and named.name for named in (way.user, way.group, way.role)]
    moments = [moment and written(moment) for moment in (way.granted_at, way.starts_at, way.ends_at)]
    return (
        *names, way.privilege, way.effect, on and on.kind, on and dotted(on.full_name), way.is_direct, way.owner,
        way.verdict, way.says, way.grantor, *moments,
    )  # fmt: skip
