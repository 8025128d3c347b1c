"""Models in this process, by transformers."""
