"""Log, code, review and report the sessions of a study, without ROS or a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
