"""How a robot's turn reads in its exchange: features, classifier, shipped weights."""
