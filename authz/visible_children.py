"""An actor's rights on the children of one object; the ancestors are evaluated once for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Count, Q

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, unended
from authz.policy import Rights
from metalake.lineage import Lineage, Located, Node


def rights_on_each(actor: Actor, above: Lineage | None, nodes: Iterable[Node]) -> dict[Node, Rights]:
    """The rights on each child of an object, as by `policy.rights_on`; on metalakes if `above` is None."""
    if above is None:
        return {node: policy.rights_on(actor, Located(nodes=(node,))) for node in nodes}
    parent = policy.rights_on(actor, above)
    if not actor.is_member(above.nodes[0].id):
        return dict.fromkeys(nodes, parent)
    inherited = parent.owned - {operations.SELF}
    return {
        node: Rights(
            member=True,
            mask=parent.mask | actor.mask([node.id]),
            owned=inherited | {node.kind, operations.SELF} if actor.owns(node) else inherited,
        )
        for node in nodes
    }


def count_own_grants(actor: Actor, rights: Mapping[Node, Rights]) -> dict[int, int]:
    """The number of grants on each object itself that the actor may read, by id, in one statement."""
    open_to_actor = [
        node.id for node, on_it in rights.items() if policy.decide(operations.read_access(node.kind), on_it, node.kind)
    ]
    readable = Q(content_object_id__in=open_to_actor)
    if actor.roles:
        readable |= Q(content_object_id__in=[node.id for node in rights], group__role__in=actor.roles)
    rows = Grant.objects.filter(readable, unended(actor.moment), group__role__isnull=False).order_by()
    return dict(rows.values_list("content_object_id").annotate(Count("pk")))
