"""Judge a window with a model: prompts, questions and triggers."""
