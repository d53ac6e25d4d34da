"""The pages for people who grant.

Each page is one function, which renders the part that changes if htmx asks, else the whole page. Pages decide
nothing; an object that the account may not see is answered like a missing one.
"""
