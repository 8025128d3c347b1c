"""What is known around a turn: turns, scene, memory, wording, meaning."""
