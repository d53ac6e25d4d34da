"""A throw-away kind of object, whole: a test adds it to a copy of the tree and uses it."""
