"""A whole study in one folder: study.yaml, its sessions, who owes what, and what was withdrawn."""
