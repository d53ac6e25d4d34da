"""The form that names one grant to revoke."""

from __future__ import annotations

from django import forms

from access.plans.desired import Change
from authz.services.grant_entries import Given
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege


class RevokeForm(forms.Form):
    """A role and the privilege to revoke from it on an object."""

    role = forms.CharField(max_length=200, strip=False)
    privilege = forms.ChoiceField(choices=[(each.value, each.value) for each in Privilege])
    effect = forms.ChoiceField(required=False, choices=[(each.value, each.value) for each in Effect])

    def change(self, on: Located) -> Change:
        """The change of a plan; it revokes the grant whatever its start and end."""
        given = Given(Effect(self.cleaned_data["effect"] or Effect.ALLOW.value))
        privilege = Privilege(self.cleaned_data["privilege"])
        return Change("revoke", self.cleaned_data["role"], privilege, given, (on.kind, dotted(on.full_name)))
