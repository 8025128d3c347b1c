"""Thin ROS 2 adapters: convert messages, call the pure packages and publish the results."""
