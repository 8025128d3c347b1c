"""Run GGUF models in this process with llama.cpp."""
