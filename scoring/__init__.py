"""Measures as pure functions: event matching, F1, intervals, calibration and agreement."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
