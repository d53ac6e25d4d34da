"""`gcli`, the command line: a client of Metalake's REST wires."""
