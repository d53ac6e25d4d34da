"""The stores of what our own database keeps: its rows are the truth, in one transaction a write."""
