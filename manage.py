#!/usr/bin/env python
"""Django's command line; `serve`, `worker` and `bootstrap` are ours."""

from metalake.__main__ import main

if __name__ == "__main__":
    main()
