"""The product driven from outside, by its commands and topics."""
