"""The engine of a request, by its User-Agent: one of a few values, to bound metric labels."""

from __future__ import annotations

from functools import lru_cache

# A substring of the lower-case User-Agent, and the engine; the first match wins.
_SIGNS = (
    ("pyiceberg", "pyiceberg"),
    ("duckdb", "duckdb"),
    ("trino", "trino"),
    ("flink", "flink"),
    ("spark", "spark"),
    ("gcli", "gcli"),
    ("metalake-client", "metalake-client"),
    ("gravitino", "gravitino"),
    ("mozilla", "browser"),
    ("curl", "curl"),
    ("apache-httpclient", "java"),  # Iceberg's Java client, in any engine
    ("java", "java"),
    ("python", "python"),
)
OTHER, NONE = "other", ""
ENGINES = (NONE, *dict.fromkeys(word for _, word in _SIGNS), OTHER)


@lru_cache(1024)
def engine_of(user_agent: str) -> str:
    """One of ENGINES; NONE without a User-Agent."""
    if not user_agent:
        return NONE
    lower = user_agent[:200].lower()
    return next((word for sign, word in _SIGNS if sign in lower), OTHER)
