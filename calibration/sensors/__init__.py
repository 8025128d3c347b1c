"""Measure how far the clocks of microphone, camera and robot speech lie apart."""
