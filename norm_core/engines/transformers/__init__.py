"""Run models in this process with transformers."""
