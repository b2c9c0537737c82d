"""The real models, loaded once for the whole test run."""

from __future__ import annotations

from functools import cache

from hivemem.models.onnx import OnnxEmbedder, OnnxReranker
from hivemem.models.weights import EMBEDDER, RERANKER, packaged_files


@cache
def onnx_embedder() -> OnnxEmbedder:
    return OnnxEmbedder(packaged_files(EMBEDDER))


@cache
def onnx_reranker() -> OnnxReranker:
    return OnnxReranker(packaged_files(RERANKER))
