"""Suites run through the robot's nodes: bags of items, transports that play them, and folders of what was answered."""
