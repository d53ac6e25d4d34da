"""Spark's daemon that forks Python workers, with the crawler's libraries imported first.

Otherwise each worker would import them: the metastore's take seconds.
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
