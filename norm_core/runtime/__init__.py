"""Time, bounded queues, health, watermarks, configuration and errors, shared by every role."""
