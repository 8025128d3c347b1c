"""Choose among the candidates that remain after the vetoes, or abstain."""
