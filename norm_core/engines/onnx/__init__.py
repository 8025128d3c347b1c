"""ONNX Runtime: sessions, and language models by onnxruntime-genai."""
