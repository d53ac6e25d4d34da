"""The record of use: what requests asked the evaluator; written, read and expired."""
