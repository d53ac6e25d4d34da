"""Users, members, groups, roles, grants and tokens, and the audit log and history of changes."""

from authz.models.history import AuditEntry, Fact
from authz.models.people import PASSWORDS, Group, Invitation, Member, Remembered, Role, Token, User, UserManager
from authz.models.rights import AccessRequest, Grant, Plan, PolicyChange, PolicyEpoch, in_force, unended
from authz.models.use import AccessReview, Dormancy, Use, UseCaller, UseObject, UseQuestion, UseWriter

__all__ = [
    "PASSWORDS",
    "AccessRequest",
    "AccessReview",
    "AuditEntry",
    "Dormancy",
    "Fact",
    "Grant",
    "Group",
    "Invitation",
    "Member",
    "Plan",
    "PolicyChange",
    "PolicyEpoch",
    "Remembered",
    "Role",
    "Token",
    "Use",
    "UseCaller",
    "UseObject",
    "UseQuestion",
    "UseWriter",
    "User",
    "UserManager",
    "in_force",
    "unended",
]
