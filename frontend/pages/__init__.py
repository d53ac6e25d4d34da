"""The pages for people who grant.

Each page is one function, which renders the changed part for htmx, else the full page. Pages decide nothing; an object
that the account may not see gets the same 404 as a missing one.
"""
