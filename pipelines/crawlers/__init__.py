"""Reading outside systems on Spark's executors, for the job builtin-harvest (docs/decisions/harvest.md)."""
