"""What runs a job: who takes it up, the process that watches it, and what ends it."""
