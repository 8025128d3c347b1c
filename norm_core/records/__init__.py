"""The records that travel between parts: one frozen dataclass a thing, and their message and JSON forms."""
