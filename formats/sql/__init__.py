"""Analysis of view SQL with sqlglot: its sources, its columns, and its translation to other dialects.

The SQL is untrusted, and nothing here limits time or memory: run it in a process that can be killed.
"""
