"""Recorded sessions and benchmark suites, played through the same nodes that run on a robot."""
