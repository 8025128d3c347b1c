"""Choose among the candidates that stand, or abstain."""
