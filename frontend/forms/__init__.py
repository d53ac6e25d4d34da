"""Forms for the services that the API also calls; refusals are shown at the form."""
