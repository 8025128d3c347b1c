"""Choose a robot's next action from a scene and candidate actions, or abstain."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
