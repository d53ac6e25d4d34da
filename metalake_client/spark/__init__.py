"""A Spark session in which every catalog of a metalake is there under its name."""
