"""Replay recorded sessions and benchmark suites through the same roles and nodes that run on a robot."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
