"""The access review: who can do what in a metalake, resolved from its grants, roles, groups, owners and DENYs."""
