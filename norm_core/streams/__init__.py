"""Bounded queues, watermarks and the records of the last seconds."""
