"""What a machine has, and which model and engine fit it."""
