"""Executes jobs: scheduling, the watching process, and clean-up."""
