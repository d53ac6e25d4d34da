"""The SQL of views, by sqlglot: its sources, its columns, and its translation to other dialects.

It may be hostile, and nothing here bounds time or memory: it is to run in a process that can be ended.
"""
