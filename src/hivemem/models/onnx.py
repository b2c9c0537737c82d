"""The default models: an embedder and a reranker that run on the CPU, offline, through onnxruntime.

Every text goes through the network alone. The weights are quantised dynamically: one activation
scale serves a whole batch, so a text's result would depend on its companions (measured: up to 0.05
in a vector's entry, up to 0.38 in a logit). Alone it is exact and needs no padding. `threads` texts are
computed at once, each on one core. docs/decisions/model-weights.md has what that costs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from hivemem.errors import Corruption, HivememError, InvalidInput
from hivemem.models.passages import PassageLimits, split_passages
from hivemem.models.runtime import ort
from hivemem.models.weights import ModelFiles
from hivemem.ports.models import Span

BGE_QUERY_PREFIX = "Represent this sentence for searching relevant passages: "

# No tokenizer here makes more than this many characters into one token on ordinary text. A longer
# text is cut to it before it is tokenised, so that a megabyte costs what a window costs.
_CHARACTERS_A_TOKEN = 16

# Short texts are cut and then embedded whole: so many of them are tokenised once for both. An import has
# two batches of 256 between the two.
_KEPT_ENCODINGS = 1024


class OnnxEmbedder:
    """Vectors from a BERT-like ONNX model. See `hivemem.ports.models.Embedder` for the contract.

    Args:
        files: Verified weights; their `model_id` becomes this embedder's.
        threads: Texts computed at once, one core each. Default: the cores this process may use.
        window_tokens: What the model was trained for, special tokens included.
        query_prefix: Put before every question, never before a stored text.
        pooling: `cls` takes the first token's vector, `mean` the average over all tokens.
        passages: How `passages` cuts; its window is bounded by `window_tokens`.

    Raises:
        Corruption: The files are not an ONNX model and a tokenizer that fit together.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        threads: int | None = None,
        window_tokens: int = 512,
        query_prefix: str = BGE_QUERY_PREFIX,
        pooling: Literal["cls", "mean"] = "cls",
        passages: PassageLimits | None = None,
    ) -> None:
        self._model_id = files.model_id
        self._tokenizer = load_tokenizer(files.tokenizer)
        self._network = OnnxNetwork(files.model, threads=threads)
        self._window = window_tokens - self._tokenizer.num_special_tokens_to_add(False)
        self._pooling = pooling
        self._limits = passages or PassageLimits()
        if self._limits.window > self._window:
            raise InvalidInput(
                f"passages of up to {self._limits.window} tokens do not fit the model's {self._window}"
            )
        self._prefix = self._tokenizer.encode(query_prefix, add_special_tokens=False)
        self._dimension = len(self._vectors([self._prefix])[0])
        self._kept: dict[str, Encoding] = {}

    @property
    def model_id(self) -> str:
        """Names the vector space, quantisation included."""
        return self._model_id

    @property
    def dimension(self) -> int:
        """Length of every vector, as the model answered when it was loaded."""
        return self._dimension

    def passages(self, text: str) -> list[Span]:
        """Stretches that fit the window; see `hivemem.models.passages.split_passages`."""
        return split_passages(text, self._token_starts, self._limits)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors; of a text longer than the window, its first tokens are seen."""
        longest = self._window * _CHARACTERS_A_TOKEN
        kept = [self._kept.pop(text, None) for text in texts]
        left = [text[:longest] for text, encoding in zip(texts, kept, strict=True) if encoding is None]
        new = iter(self._tokenizer.encode_batch(left, add_special_tokens=False) if left else ())
        encodings = [next(new) if encoding is None else encoding for encoding in kept]
        for encoding in encodings:
            encoding.truncate(self._window)
        return np.array(self._vectors(encodings), np.float32).reshape(len(texts), self._dimension)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Unit vector of the prefix and the text; of a text that is too long, its last tokens are seen."""
        room = self._window - len(self._prefix)
        encoding = self._tokenizer.encode(text[-room * _CHARACTERS_A_TOKEN :], add_special_tokens=False)
        encoding.truncate(room, direction="left")
        return self._vectors([Encoding.merge([self._prefix, encoding], growing_offsets=False)])[0]

    def _token_starts(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        if len(texts) == 1:
            if len(self._kept) >= _KEPT_ENCODINGS:
                self._kept.clear()
            self._kept[texts[0]] = encodings[0]
        return [[start for start, _ in encoding.offsets] for encoding in encodings]

    def _vectors(self, encodings: Sequence[Encoding]) -> list[NDArray[np.float32]]:
        outputs = self._network.run_each([self._tokenizer.post_process(e) for e in encodings])
        return [self._unit(output) for output in outputs]

    def _unit(self, output: NDArray[np.float32]) -> NDArray[np.float32]:
        if output.ndim == 2:  # (tokens, dimension): not pooled by the network itself
            output = output[0] if self._pooling == "cls" else output.mean(axis=0)
        norm = float(np.linalg.norm(output))
        if output.ndim != 1 or not 0 < norm < np.inf:
            raise Corruption(f"{self._model_id} gave an output of shape {output.shape} and norm {norm}")
        return output / np.float32(norm)


class OnnxReranker:
    """Logits from a cross-encoder in ONNX. See `hivemem.ports.models.Reranker` for the contract.

    Args:
        files: Verified weights; their `model_id` becomes this reranker's.
        threads: Pairs computed at once, one core each. Default: the cores this process may use.
        pair_tokens: Query, text and special tokens together; the text is cut to fit. The model can
            take 512; time grows with what is really there.
        query_tokens: A longer query is cut to its last tokens, so that the text keeps its room.

    Raises:
        Corruption: The files are not an ONNX model and a tokenizer that fit together.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        threads: int | None = None,
        pair_tokens: int = 256,
        query_tokens: int = 96,
    ) -> None:
        self._model_id = files.model_id
        self._tokenizer = load_tokenizer(files.tokenizer)
        self._network = OnnxNetwork(files.model, threads=threads)
        self._room = pair_tokens - self._tokenizer.num_special_tokens_to_add(True)
        if not 0 < query_tokens < self._room:
            raise InvalidInput(f"{query_tokens} query tokens leave no room in pairs of {pair_tokens} tokens")
        self._query_tokens = query_tokens

    @property
    def model_id(self) -> str:
        """Names the model; calibration of relevance belongs to one id."""
        return self._model_id

    @property
    def window_characters(self) -> int:
        """What remains for a text beside a query of a third of its limit, at 4 characters a token."""
        return (self._room - self._query_tokens // 3) * 4

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One logit a text, larger is more relevant; exactly the same whatever the other texts are."""
        asked = self._tokenizer.encode(
            query[-self._query_tokens * _CHARACTERS_A_TOKEN :], add_special_tokens=False
        )
        asked.truncate(self._query_tokens, direction="left")
        room = self._room - len(asked)
        shown = self._tokenizer.encode_batch(
            [text[: room * _CHARACTERS_A_TOKEN] for text in texts], add_special_tokens=False
        )
        for encoding in shown:
            encoding.truncate(room)
        outputs = self._network.run_each([self._tokenizer.post_process(asked, e) for e in shown])
        logits = np.array([output.reshape(-1)[:1] for output in outputs], np.float32).reshape(len(texts))
        if not np.isfinite(logits).all():
            raise Corruption(f"{self._model_id} gave a logit that is not finite")
        return logits


class OnnxNetwork:
    """A network that maps one tokenised text to one array, several texts at a time.

    One onnxruntime thread for each text, and as many texts at once as there are threads: there is
    nothing to wait for inside a text, no pool that spins between two operators (spinning doubled the
    time on a busy machine), and the result does not depend on the number of threads.
    """

    def __init__(self, model: Path, *, threads: int | None) -> None:
        self._threads = threads or usable_cores()
        if self._threads < 1:
            raise InvalidInput(f"threads={threads} must be positive")
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        # Processors without instructions for products of bytes (VNNI) add these up in 16 bits and cut off
        # what is more, which moved a logit by 0.14. Now they count as the others do, in a sixth more time.
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.log_severity_level = 3  # errors only: warnings about graph rewriting concern nobody here
        try:
            self._session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises its own classes, which have no public base
            raise Corruption(f"{str(model)!r} cannot be loaded as an ONNX model: {error}") from error
        self._inputs = {node.name for node in self._session.get_inputs()}
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise Corruption(f"{str(model)!r} wants inputs {sorted(unknown)}, which no text model here has")
        self._pool = ThreadPoolExecutor(self._threads, "hivemem-onnx") if self._threads > 1 else None

    def run_each(self, encodings: Sequence[Encoding]) -> list[NDArray[np.float32]]:
        """The network's first output for each text, without the batch axis, in the order given."""
        outputs: list[NDArray[np.float32] | None] = [None] * len(encodings)

        def run(position: int) -> None:
            outputs[position] = self._run(encodings[position])

        # Longest first: the threads then end together.
        order = sorted(range(len(encodings)), key=lambda position: -len(encodings[position]))
        in_turn: Callable[..., object] = map if self._pool is None or len(order) < 2 else self._pool.map
        for _ in cast("Sequence[None]", in_turn(run, order)):
            pass
        return cast("list[NDArray[np.float32]]", outputs)

    def _run(self, encoding: Encoding) -> NDArray[np.float32]:
        values: dict[str, Any] = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([values[name]], np.int64) for name in self._inputs}
        try:
            return cast("NDArray[np.float32]", self._session.run(None, feed)[0])[0]
        except Exception as error:
            raise HivememError(f"onnxruntime failed on {len(encoding)} tokens: {error}") from error


def load_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer that neither cuts nor pads: both are done here, where the limits are known.

    Raises:
        Corruption: The file is not a tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise Corruption(f"{str(path)!r} cannot be loaded as a tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def usable_cores() -> int:
    """The cores that this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
