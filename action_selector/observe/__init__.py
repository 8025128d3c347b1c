"""List the visible others and what each is doing."""
