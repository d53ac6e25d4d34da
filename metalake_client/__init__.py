"""What speaks to Metalake from outside: a client of its REST wires, and `gcli` on top of it. Needs no Django."""
