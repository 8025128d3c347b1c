"""Limits on packed data and pictures from outside, checked before they take memory."""
