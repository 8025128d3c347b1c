"""How a model is asked: one contract, whatever runs the model."""
