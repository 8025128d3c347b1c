"""Models behind a server with the OpenAI protocol."""
