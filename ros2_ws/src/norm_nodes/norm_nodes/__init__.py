"""Thin ROS 2 adapters: a node converts messages, calls the pure packages and publishes what they say."""
