"""Benchmarks as items without labels, labels without items, and scorers that alone see both."""
