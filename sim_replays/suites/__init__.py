"""Benchmarks: items without labels, labels without items, and scorers, which alone see both."""
