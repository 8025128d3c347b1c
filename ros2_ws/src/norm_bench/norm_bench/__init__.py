"""Replay benchmark suites and sessions through the robot's own nodes."""
