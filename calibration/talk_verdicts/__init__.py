"""Talk of people with machines, with people's verdicts on the machine's turns."""
