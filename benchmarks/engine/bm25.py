"""BM25 engines compared: own postings, tantivy as it is, tantivy for candidates with exact re-scoring.

All three get the same index terms from hivemem's analyser. Times are CPU seconds of the calling thread
for queries, because the machine is shared, and wall clock for tantivy's commits, which other threads do.

    python benchmarks/engine/bm25.py 6000 64000 500000

tantivy is measured where the package `tantivy` is installed.
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "src"))

from corpus import questions, short_texts

from hivemem.projection.postings import Postings
from hivemem.retrieval.analyse import AnalysedQuery, DocumentTerms, analyse_query, document_terms

try:
    import tantivy
except ImportError:
    tantivy = None

TOP = 100
CANDIDATES = 300
K1, B = 0.9, 0.4


class Own:
    name = "own postings"

    def __init__(self, documents: list[DocumentTerms]) -> None:
        self._index = Postings(k1=K1, b=B)
        for number, document in enumerate(documents):
            self._index.put(f"key_{number}", document)

    def search(self, query: AnalysedQuery) -> list[str]:
        return [hit.key for hit in self._index.search(query, TOP)]

    def replace(self, key: str, document: DocumentTerms) -> None:
        self._index.put(key, document)


class Tantivy:
    name = "tantivy as it is"

    def __init__(self, documents: list[DocumentTerms]) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("key", stored=True, tokenizer_name="raw")
        builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema)
        self._writer = self._index.writer(heap_size=256_000_000, num_threads=1)
        for number, document in enumerate(documents):
            self._add(f"key_{number}", document)
        self._commit()

    def _add(self, key: str, document: DocumentTerms) -> None:
        body = " ".join(term for term, count in document.frequencies.items() for _ in range(count))
        self._writer.add_document(tantivy.Document(key=key, body=body))

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: AnalysedQuery, limit: int = TOP) -> list[str]:
        parts = [
            (tantivy.Occur.Should, tantivy.Query.boost_query(self._term(term.text), term.weight))
            for word in query.words
            if word.informative
            for term in word.terms
        ]
        hits = self._searcher.search(tantivy.Query.boolean_query(parts), limit, count=False).hits
        return [self._searcher.doc(address)["key"][0] for _, address in hits]

    def _term(self, text: str) -> Any:
        return tantivy.Query.term_query(self._schema, "body", text)

    def replace(self, key: str, document: DocumentTerms) -> None:
        self._writer.delete_documents_by_term("key", key)
        self._add(key, document)
        self._commit()


class Rescored(Tantivy):
    name = f"tantivy, best {CANDIDATES} re-scored"

    def __init__(self, documents: list[DocumentTerms]) -> None:
        super().__init__(documents)
        self._documents = {f"key_{number}": document for number, document in enumerate(documents)}
        self._df = Counter(term for document in documents for term in document.frequencies)
        self._length = sum(document.length for document in documents)

    def search(self, query: AnalysedQuery, limit: int = TOP) -> list[str]:
        n = len(self._documents)
        mean = self._length / n
        weights = {t.text: t.weight for word in query.words if word.informative for t in word.terms}
        factors = {
            term: weight * math.log(1 + (n - self._df[term] + 0.5) / (self._df[term] + 0.5))
            for term, weight in weights.items()
        }
        scored: list[tuple[float, str]] = []
        for key in super().search(query, CANDIDATES):
            document = self._documents[key]
            norm = K1 * (1 - B + B * document.length / mean)
            total = 0.0
            for term, factor in factors.items():
                tf = document.frequencies.get(term, 0)
                total += factor * tf * (K1 + 1) / (tf + norm)
            scored.append((-total, key))
        return [key for _, key in sorted(scored)[:limit]]

    def replace(self, key: str, document: DocumentTerms) -> None:
        old = self._documents.get(key)
        if old is not None:
            self._df.subtract(old.frequencies.keys())
            self._length -= old.length
        self._documents[key] = document
        self._df.update(document.frequencies.keys())
        self._length += document.length
        super().replace(key, document)


def percentiles(run: Callable[[Any], Any], items: list[Any], clock: Callable[[], float]) -> str:
    times: list[float] = []
    for item in items:
        start = clock()
        run(item)
        times.append((clock() - start) * 1000)
    cuts = statistics.quantiles(times, n=20)
    return f"{statistics.median(times):6.2f} {cuts[-1]:6.2f}"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(count: int, extra: int = 100) -> None:
    texts = short_texts(count + extra)
    documents = [document_terms(text) for text in texts[:count]]
    further = [document_terms(text) for text in texts[count:]]
    queries = [analyse_query(text) for text in questions(300)]
    words = statistics.mean(sum(word.informative for word in query.words) for query in queries)
    print(f"\n{count} texts, {words:.1f} informative words a query")
    print(f"{'':34}load/s   query p50    p95 ms   insert p50   p95 ms     MB   top 10 shared")
    exact: list[list[str]] = []
    for engine in (Own, Tantivy, Rescored) if tantivy else (Own,):
        gc.collect()
        before, start = resident_bytes(), time.perf_counter()
        index = engine(documents)
        load = count / (time.perf_counter() - start)
        memory = (resident_bytes() - before) / 1e6
        answers = [index.search(query) for query in queries]
        exact = exact or answers
        shared = statistics.mean(
            len(set(a[:10]) & set(e[:10])) / max(1, len(e[:10])) for a, e in zip(answers, exact, strict=True)
        )
        query_times = percentiles(index.search, queries, time.thread_time)

        def insert_and_see(numbered: tuple[int, DocumentTerms], index: Any = index) -> None:
            index.replace(f"new_{numbered[0]}", numbered[1])
            index.search(queries[numbered[0]])

        insert_times = percentiles(insert_and_see, list(enumerate(further)), time.perf_counter)
        print(
            f"{engine.name:32}{load:8.0f}  {query_times}          {insert_times}"
            f"  {memory:7.0f}   {shared:.3f}"
        )
        del index


if __name__ == "__main__":
    for size in [int(argument) for argument in sys.argv[1:]] or [6_000, 64_000]:
        measure(size)
