"""The audit and the record of use, day by day, and what had no use for long."""
