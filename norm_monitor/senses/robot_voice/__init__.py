"""The robot's own voice, told apart from people's."""
