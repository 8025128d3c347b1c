"""People with a real robot: coded stretches of SCOUT as material for the weights."""
