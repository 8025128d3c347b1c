"""The prompts of the models, one file per task; a changed wording is a new version."""
