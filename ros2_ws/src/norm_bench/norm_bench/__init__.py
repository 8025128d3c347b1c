"""Replay benchmark suites and sessions through the robot's own nodes, and stand in for a robot."""
