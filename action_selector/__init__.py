"""From a scene and candidate actions to the next action."""
