"""The SQL of views: what it reads, which columns it yields, and how another dialect would write it (sqlglot).

It may be hostile, and nothing here bounds time or memory: it is to run in a process that can be ended.
"""
