"""A Spark session in which every catalog of a metalake is there under its name."""

from metalake_client.spark.session import metalake_session

__all__ = ["metalake_session"]
