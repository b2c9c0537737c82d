"""Models: where weights come from, the ONNX and HTTP adapters, and the executor that runs them.

Nothing is imported here on purpose: `hivemem.models.onnx` loads onnxruntime, which a server that
uses remote models, and most tests, never need.
"""
