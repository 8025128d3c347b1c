"""Convert labels to and from the formats of annotation tools."""
