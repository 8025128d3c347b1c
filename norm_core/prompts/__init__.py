"""The words that models are asked with: a YAML file a task, with a version that goes up whenever a word changes."""
