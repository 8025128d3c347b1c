"""Separate the robot's own voice from people's."""
