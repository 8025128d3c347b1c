"""Turn what a robot senses into flags of social errors and competences."""

import lazy_loader

import norm_core  # noqa: F401  before any library of the modules here, so that its usage reports are off

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
