"""From a robot's messages to frames and utterances, stamped at their source."""
