"""A large language model as judge: its recorded answers about shipped encounters, their fit and what they add."""
