"""Artefacts fitted on labels, and the labelled talks behind them."""
