"""The context of a turn: turns, scene, memory, wording, meaning."""
