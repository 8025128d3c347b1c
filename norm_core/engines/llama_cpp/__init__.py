"""GGUF models in this process, by llama.cpp."""
