"""Job templates and their runs: programs that the operator lets users start, with the user's own rights."""
