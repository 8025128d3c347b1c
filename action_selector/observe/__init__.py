"""Observe the other agents and their activities."""
