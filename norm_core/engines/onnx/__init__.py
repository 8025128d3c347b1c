"""ONNX Runtime sessions, and language models with onnxruntime-genai."""
