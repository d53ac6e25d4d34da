"""A Spark session with every catalog of a metalake under its name."""

from metalake_client.spark.session import metalake_session

__all__ = ["metalake_session"]
