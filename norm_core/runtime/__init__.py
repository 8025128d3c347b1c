"""What runs beneath every role: time, bounded queues, health, watermarks, configuration, errors."""
