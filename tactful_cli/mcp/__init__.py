"""`tactful mcp`: a running graph as tools of the Model Context Protocol."""
