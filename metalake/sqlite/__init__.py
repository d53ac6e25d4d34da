"""SQLite as Django knows it, but for how the writers of a process wait for each other: `base`, as Django names it."""
