"""From what a robot senses to social flags."""
