"""What Spark's own analyzer makes of the SQL of views: what it reads, what it yields, and what is wrong with it."""
