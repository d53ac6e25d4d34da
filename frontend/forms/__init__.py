"""Forms for the services that the API also calls; errors are shown at the form."""
