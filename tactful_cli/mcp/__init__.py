"""`tactful mcp`: a running graph or a bag as tools of the Model Context Protocol."""
