"""The process that Spark forks Python workers from, with the crawler's libraries imported before it does.

Each worker would import them itself otherwise: those of a metastore take seconds.
"""

from __future__ import annotations

import os
from importlib import import_module

MODULE = "METALAKE_CRAWLER"


def main() -> None:
    from pyspark.daemon import manager

    import_module(os.environ[MODULE])
    import_module("pipelines.crawlers.delivery")
    manager()


if __name__ == "__main__":
    main()
