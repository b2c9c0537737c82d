"""Credentials: form, hash, and the right to write."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from hivemem.domain.access import API_KEY_PATTERN, Principal, Scope, hash_api_key, new_api_key
from hivemem.errors import Forbidden


def test_fresh_keys_have_the_documented_form_and_differ() -> None:
    keys = {new_api_key() for _ in range(50)}
    assert len(keys) == 50
    assert all(API_KEY_PATTERN.fullmatch(key) for key in keys)


def test_the_whole_key_is_hashed() -> None:
    key = "hm_" + "0" * 64
    assert hash_api_key(key) == hashlib.sha256(key.encode()).hexdigest()


def test_only_an_owner_may_write() -> None:
    Principal(user_id="u", graph_id="g", scope=Scope.OWNER).require_write()
    with pytest.raises(Forbidden, match="read-only"):
        Principal(user_id="u", graph_id="g", scope=Scope.MEMBER).require_write()


def test_reading_leaves_no_trace_in_a_frozen_graph() -> None:
    caller = Principal(user_id="u", graph_id="g", scope=Scope.OWNER)
    assert caller.keeps_conversations
    assert not replace(caller, frozen=True).keeps_conversations
