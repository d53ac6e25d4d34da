"""The audit log and usage records by day, and dormant objects and members."""
