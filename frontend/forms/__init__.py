"""Forms for the services that the API calls too; refusals are shown beside the form."""
