"""The study log: hash-chained entries, written live or imported, read, verified and recovered."""
