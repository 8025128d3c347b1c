"""The study log, a chain of hashed entries: live writing, import, verification and recovery."""
