"""How a model reads a window: prompts, questions, and when it is asked."""
