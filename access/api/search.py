"""The native wire's endpoint of the search; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.explain import search
from access.wire import access as wire
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.paging import read_size
from metalake.rest.views import Endpoint, answers

DEFAULT_SIZE, MAX_SIZE = 20, 100  # of each sort


class Search(Endpoint):
    @answers("load_metalake", reply={"results": wire.ResultsReply}, query=("q", "limit", "exact"), id="search")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """Search objects by name or path, roles, users and groups, among what the caller may see.

        Whoever may grant somewhere is told the roles that carry grants there; with exact=true also roles and people of
        exactly that name.
        """
        text = self.text("q")
        if text is None:
            raise Invalid("Name what to search for: q is needed.")
        limit = read_size("limit", self.text("limit"), DEFAULT_SIZE, MAX_SIZE)
        results = search.search(actor, metalake, text, limit, exact=self.flag("exact"))
        return {"results": wire.results_reply(results)}
