"""The executor: who gets the next turn, what is refused, what a failure or a cancelled call leaves behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.errors import Corruption, HivememError, InvalidInput, Overloaded, Unavailable
from hivemem.models import executor as executor_module
from hivemem.models.executor import ModelExecutor, Reranked
from hivemem.models.hashing import HashingEmbedder


class Gate:
    """Holds the worker in its first turn until the test has queued everything it wants."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.opened.wait(timeout=30)


class RecordingEmbedder(HashingEmbedder):
    """Writes each turn into a log that it shares with the reranker."""

    def __init__(self, log: list[str], gate: Gate | None = None, dimension: int = 16) -> None:
        super().__init__(dimension)
        self.log = log
        self.gate = gate
        self.failing = ""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        if not threading.current_thread().name.startswith("hivemem-models"):
            raise AssertionError("a model ran outside of the worker thread")
        if self.gate and text == "gate":
            self.gate.pass_through()
        self.log.append(f"query {text}")
        if text == "bad":
            raise Corruption("a bad question")
        return super().embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.log.append("passages " + " ".join(texts))
        if self.failing and self.failing in texts:
            raise ValueError("this text breaks the model")
        return np.array([super(RecordingEmbedder, self).embed_query(text) for text in texts])


class LengthReranker:
    """A text's logit is its length; writes each turn into the log."""

    model_id = "length"
    window_characters = 1_000

    def __init__(self, log: list[str], on_turn: Callable[[], None] = lambda: None) -> None:
        self.log = log
        self.on_turn = on_turn

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.log.append(f"pairs {query} {len(texts)}")
        self.on_turn()
        if query == "bad":
            raise Unavailable("the reranker is down")
        return np.array([len(text) for text in texts], np.float32)


class Bench:
    """An executor over recording models, and a gate to queue work before any of it runs."""

    def __init__(self, **limits: int) -> None:
        self.log: list[str] = []
        self.gate = Gate()
        self.embedder = RecordingEmbedder(self.log, self.gate)
        self.reranker = LengthReranker(self.log)
        self.executor = ModelExecutor(self.embedder, self.reranker, **limits)

    async def queue_behind_the_gate(self, *calls: Awaitable[object]) -> list[object]:
        """Run the calls; their work was all queued, in this order, before the first turn."""
        first = asyncio.ensure_future(self.executor.embed_query("gate"))
        await asyncio.to_thread(self.gate.reached.wait, 30)
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(10):  # steps of the loop, enough for a call to be queued and cancelled again
            await asyncio.sleep(0)
        self.gate.opened.set()
        await first
        self.log.remove("query gate")
        return list(await asyncio.gather(*tasks, return_exceptions=True))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench(batch_texts=2)
    yield made
    made.gate.opened.set()
    made.executor.close()


async def test_answers_are_those_of_the_models_in_the_order_of_the_texts(bench: Bench) -> None:
    plain = HashingEmbedder(16)
    texts = ["a long text about boilers", "keys", "", "the garden pump", "keys"]

    np.testing.assert_allclose(await bench.executor.embed_query("x y"), plain.embed_query("x y"))
    np.testing.assert_allclose(await bench.executor.embed_passages(texts), plain.embed_passages(texts))
    reranked = await bench.executor.rerank("q", texts, budget_seconds=None)
    assert reranked.logits.tolist() == [len(text) for text in texts]
    assert (reranked.scored, reranked.cut) == (5, False)


async def test_nothing_to_do_needs_no_turn(bench: Bench) -> None:
    assert (await bench.executor.embed_passages([])).shape == (0, 16)
    reranked = await bench.executor.rerank("q", [], budget_seconds=1.0)
    assert (reranked.logits.shape, reranked.scored, reranked.cut) == ((0,), 0, False)
    assert bench.log == []


async def test_questions_go_first_then_pairs_then_passages(bench: Bench) -> None:
    await bench.queue_behind_the_gate(
        bench.executor.embed_passages(["p1", "p2"]),
        bench.executor.rerank("r", ["a", "b"], budget_seconds=None),
        bench.executor.embed_query("q"),
    )

    assert bench.log == ["query q", "pairs r 2", "passages p2 p1"]


async def test_the_recall_that_came_first_is_read_to_its_end_first(bench: Bench) -> None:
    await bench.queue_behind_the_gate(
        bench.executor.rerank("second", ["a"] * 3, budget_seconds=None),
        bench.executor.rerank("third", ["a"] * 2, budget_seconds=None),
        bench.executor.rerank("first", ["a"] * 3, budget_seconds=None, since=0.0),
    )

    assert bench.log == [
        "pairs first 2",
        "pairs first 1",
        "pairs second 2",
        "pairs second 1",
        "pairs third 2",
    ]


async def test_passages_get_every_fifth_turn_under_constant_recalls(bench: Bench) -> None:
    await bench.queue_behind_the_gate(
        bench.executor.rerank("r", ["a"] * 20, budget_seconds=None),
        bench.executor.embed_passages(["p1", "p2", "p3"]),
    )

    turns = ["P" if line.startswith("passages") else "r" for line in bench.log]
    assert "".join(turns) == "rrrrPrrrrPrr"


async def test_waiting_passages_of_several_callers_share_a_turn(bench: Bench) -> None:
    answers = await bench.queue_behind_the_gate(
        bench.executor.embed_passages(["a1", "a2", "a3"]), bench.executor.embed_passages(["b1"])
    )

    assert bench.log == ["passages a3 b1", "passages a2 a1"]
    assert [answer.shape for answer in answers if isinstance(answer, np.ndarray)] == [(3, 16), (1, 16)]


async def test_more_callers_than_a_turn_has_places_all_get_their_turn(bench: Bench) -> None:
    await bench.queue_behind_the_gate(
        *(bench.executor.embed_passages([f"{caller}1", f"{caller}2"]) for caller in "abc")
    )

    assert bench.log == ["passages a2 b2", "passages c2 a1", "passages b1 c1"]


async def test_a_text_that_breaks_the_model_fails_its_caller_only(bench: Bench) -> None:
    bench.embedder.failing = "poison"

    bad, good = await bench.queue_behind_the_gate(
        bench.executor.embed_passages(["poison"]), bench.executor.embed_passages(["wholesome"])
    )

    assert isinstance(bad, HivememError)
    assert "this text breaks the model" in bad.message
    assert isinstance(good, np.ndarray)
    assert good.shape == (1, 16)
    assert bench.executor.queued_texts == 0


async def test_a_failing_long_request_ends_at_once(bench: Bench) -> None:
    bench.embedder.failing = "poison, the longest text of all"

    with pytest.raises(HivememError):
        await bench.executor.embed_passages(["poison, the longest text of all", "b", "c", "d", "e"])

    assert len(bench.log) == 1
    assert bench.executor.queued_texts == 0


async def test_errors_of_models_reach_the_caller_as_they_are_and_work_goes_on(bench: Bench) -> None:
    with pytest.raises(Corruption, match="a bad question"):
        await bench.executor.embed_query("bad")
    with pytest.raises(Unavailable, match="the reranker is down"):
        await bench.executor.rerank("bad", ["a"], budget_seconds=None)

    assert (await bench.executor.embed_query("good")).shape == (16,)
    assert bench.executor.queued_texts == 0


async def test_a_budget_ends_the_scoring_and_says_so(bench: Bench) -> None:
    reranked = await bench.executor.rerank("r", ["aaa", "bb", "c", "d"], budget_seconds=0.0)

    np.testing.assert_array_equal(reranked.logits, np.array([3, 2, np.nan, np.nan], np.float32))
    assert (reranked.scored, reranked.cut) == (2, True)


async def test_waiting_for_others_does_not_use_up_a_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def turn_of_ten_seconds() -> None:
        nonlocal now
        now += 10.0

    monkeypatch.setattr(executor_module, "_now", lambda: now)
    bench.reranker.on_turn = turn_of_ten_seconds
    first, second, third = await bench.queue_behind_the_gate(
        bench.executor.rerank("r", ["a"] * 8, budget_seconds=50.0),
        bench.executor.rerank("r", ["a"] * 4, budget_seconds=20.0),
        bench.executor.rerank("r", ["a"] * 6, budget_seconds=60.0, wait_seconds=75.0),
    )

    assert isinstance(first, Reranked) and isinstance(second, Reranked) and isinstance(third, Reranked)
    assert (first.scored, first.cut, first.seconds) == (8, False, 40.0)
    assert (second.scored, second.cut, second.seconds) == (4, False, 20.0)
    assert (third.scored, third.cut, third.seconds) == (4, True, 20.0)


async def test_a_budget_that_is_enough_cuts_nothing(bench: Bench) -> None:
    reranked = await bench.executor.rerank("r", ["aaa", "bb", "c"], budget_seconds=60.0)

    assert (reranked.scored, reranked.cut) == (3, False)


async def test_the_work_of_a_cancelled_caller_is_dropped(bench: Bench) -> None:
    async def cancelled() -> None:
        call = asyncio.ensure_future(bench.executor.rerank("dropped", ["a"] * 50, budget_seconds=None))
        await asyncio.sleep(0)
        assert bench.executor.queued_texts == 52
        call.cancel()

    await bench.queue_behind_the_gate(bench.executor.embed_passages(["kept"]), cancelled())
    await bench.executor.embed_query("after")

    assert bench.log == ["passages kept", "query after"]
    assert bench.executor.queued_texts == 0


async def test_a_caller_cancelled_in_the_middle_of_its_turns_stops_them(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()
    call: asyncio.Future[object] = asyncio.ensure_future(
        bench.executor.rerank("r", ["a"] * 50, budget_seconds=None)
    )

    def cancel() -> None:
        call.cancel()
        loop.call_soon(cancelled.set)  # after the cancellation has reached the job

    def on_turn() -> None:
        loop.call_soon_threadsafe(cancel)
        assert cancelled.wait(timeout=30)

    bench.reranker.on_turn = on_turn

    with pytest.raises(asyncio.CancelledError):
        await call
    await bench.executor.embed_query("after")

    assert bench.log == ["pairs r 2", "query after"]
    assert bench.executor.queued_texts == 0


async def test_a_full_queue_refuses_and_names_when_to_try_again() -> None:
    bench = Bench(batch_texts=2, max_queued_texts=10)

    kept, refused, small = await bench.queue_behind_the_gate(
        bench.executor.rerank("r", ["a"] * 8, budget_seconds=None),
        bench.executor.rerank("r", ["a"] * 2, budget_seconds=None),
        bench.executor.embed_query("q"),
    )

    assert not isinstance(kept, Exception)
    assert isinstance(refused, Overloaded)
    assert "9 texts wait" in refused.message
    assert refused.retry_after_seconds >= 1
    assert isinstance(small, np.ndarray)
    bench.executor.close()


async def test_passages_leave_room_for_recalls() -> None:
    bench = Bench(batch_texts=2, max_queued_texts=20)

    first, second, recall = await bench.queue_behind_the_gate(
        bench.executor.embed_passages(["p"] * 14),
        bench.executor.embed_passages(["p"] * 2),
        bench.executor.rerank("r", ["a"] * 5, budget_seconds=None),
    )

    assert isinstance(first, np.ndarray)
    assert isinstance(second, Overloaded)
    assert not isinstance(recall, Exception)
    bench.executor.close()


async def test_one_request_of_any_size_is_accepted_when_nothing_waits() -> None:
    bench = Bench(max_queued_texts=10)

    assert (await bench.executor.embed_passages(["p"] * 100)).shape == (100, 16)
    bench.executor.close()


async def test_closing_answers_those_who_wait_and_ends_the_thread(bench: Bench) -> None:
    running = asyncio.ensure_future(bench.executor.embed_query("gate"))
    await asyncio.to_thread(bench.gate.reached.wait, 30)
    waiting = [
        asyncio.ensure_future(bench.executor.embed_passages(["a"] * 5)),
        asyncio.ensure_future(bench.executor.rerank("r", ["a"], budget_seconds=None)),
    ]
    while bench.executor.queued_texts < 7:
        await asyncio.sleep(0)
    closing = asyncio.ensure_future(asyncio.to_thread(bench.executor.close))

    for answer in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(answer, Unavailable)
    bench.gate.opened.set()
    await closing
    assert (await running).shape == (16,)  # the turn that had begun was finished
    with pytest.raises(Unavailable, match="the server is stopping"):
        await bench.executor.embed_query("late")
    bench.executor.close()  # twice is once


async def test_closing_in_the_middle_of_a_long_request_ends_it(bench: Bench) -> None:
    closing: list[threading.Thread] = []

    def close_now() -> None:
        thread = threading.Thread(target=bench.executor.close)
        thread.start()
        closing.append(thread)
        while not bench.executor._closed:
            pass

    bench.reranker.on_turn = close_now

    with pytest.raises(Unavailable, match="were closed"):
        await bench.executor.rerank("r", ["a"] * 50, budget_seconds=None)

    await asyncio.to_thread(closing[0].join, 30)
    assert bench.log == ["pairs r 2"]


async def test_without_models_the_reason_is_told() -> None:
    executor = ModelExecutor(None, None, embedder_problem="model.onnx is cut; reinstall it")

    assert executor.embedder is None
    assert executor.embedder_problem == "model.onnx is cut; reinstall it"
    assert executor.reranker_problem is None  # none by choice
    with pytest.raises(Unavailable, match=r"model\.onnx is cut") as caught:
        await executor.embed_query("x")
    assert caught.value.code == "embedder_unavailable"
    with pytest.raises(Unavailable, match=r"model\.onnx is cut"):
        await executor.embed_passages(["x"])
    with pytest.raises(Unavailable, match="no re-ranking model") as caught:
        await executor.rerank("x", ["y"], budget_seconds=None)
    assert caught.value.code == "reranker_unavailable"
    executor.close()


class HereAndThere(HashingEmbedder):
    """Notes the threads it ran in."""

    def __init__(self) -> None:
        super().__init__(16, immediate=True)
        self.threads: list[str] = []

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.threads.append(threading.current_thread().name)
        if text == "bad":
            raise ValueError("a bad text")
        return super().embed_query(text)


async def test_an_immediate_embedder_does_short_texts_on_the_spot_and_long_ones_in_the_thread() -> None:
    embedder, here = HereAndThere(), threading.current_thread().name
    executor = ModelExecutor(embedder, None)
    try:
        np.testing.assert_array_equal(
            await executor.embed_query("a ferry"), HashingEmbedder(16).embed_query("a ferry")
        )
        assert (await executor.embed_passages(["a ferry", "an owl"])).shape == (2, 16)
        assert embedder.threads == [here] * 3
        await executor.embed_query("owl " * 300)
        await executor.embed_passages(["owl " * 200, "ferry " * 200])
        assert embedder.threads[3:] == ["hivemem-models"] * 3
        assert executor.done_work["query"].texts == 2
        assert executor.done_work["passages"].texts == 4
        with pytest.raises(HivememError, match="the model failed: a bad text"):
            await executor.embed_query("bad")
    finally:
        executor.close()
    with pytest.raises(Unavailable, match="closed"):
        await executor.embed_query("a ferry")


async def test_a_repaired_model_is_used_from_then_on() -> None:
    executor = ModelExecutor(None, None, embedder_problem="missing")

    executor.use_embedder(HashingEmbedder(16))
    executor.use_reranker(LengthReranker([]))

    assert executor.embedder_problem is None
    assert executor.reranker_problem is None
    assert (await executor.embed_query("x")).shape == (16,)
    assert (await executor.rerank("x", ["abc"], budget_seconds=None)).logits.tolist() == [3.0]
    executor.close()


async def test_work_that_waits_keeps_the_embedder_it_was_asked_of(bench: Bench) -> None:
    async def change() -> None:
        bench.executor.use_embedder(RecordingEmbedder(bench.log, dimension=32))

    old, _, new = await bench.queue_behind_the_gate(
        bench.executor.embed_passages(["a", "b", "c"]), change(), bench.executor.embed_passages(["d"])
    )

    assert isinstance(old, np.ndarray)
    assert isinstance(new, np.ndarray)
    assert (old.shape, new.shape) == ((3, 16), (1, 32))


async def test_finished_work_is_not_kept_in_memory(bench: Bench) -> None:
    vectors = await bench.executor.embed_passages(["a", "b"])
    await bench.executor.embed_query("after")
    kept = weakref.ref(vectors)
    del vectors
    gc.collect()

    assert kept() is None


def test_limits_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_texts=0"):
        ModelExecutor(None, None, batch_texts=0)


def test_it_serves_several_event_loops_one_after_the_other() -> None:
    executor = ModelExecutor(HashingEmbedder(16), None)

    first = asyncio.run(executor.embed_query("x"))
    second = asyncio.run(executor.embed_query("x"))

    np.testing.assert_array_equal(first, second)
    executor.close()
