"""Questions find memories by word: whatever characters, script, spelling or identifier they hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hivemem.service.recall import RecallResult
from tests.cases.memory import Memory, keys_of
from tests.cases.reports import Report, play

pytestmark = pytest.mark.models


def firsts(results: list[RecallResult]) -> list[str | None]:
    return [keys_of(result)[0] if result.hits else None for result in results]


def found_by_word(result: RecallResult) -> bool:
    """Whether the first result has a keyword score."""
    return result.hits[0].scores.get("bm25", 0.0) > 0


async def first(memory: Memory, query: str) -> str | None:
    """The first key, which must have been found by word too."""
    result = await memory.recall(query)
    if not result.hits:
        return None
    assert found_by_word(result), f"{query!r} found {keys_of(result)[0]!r} by meaning alone"
    return keys_of(result)[0]


@pytest.mark.shared
async def test_reported_query_syntax(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C01")
    await play(memory, case.setup)
    results = await play(memory, case.sequence)
    assert firsts(results) == [
        "bee_log",
        "quote_policy",
        "move_list",
        "move_list",
        "move_list",
        "retry_policy",
        "retry_policy",
        "move_list",
        "retry_policy",
    ]
    assert all(result.meta["legs"]["bm25"]["hits"] >= 1 for result in results)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sourdough NOT rye", "bread_log"),
        ("hydration:75", "bread_log"),
        ('"levain overnight', "bread_log"),
        ("gearbox AND (clutch", "car_note"),
        ("clutch* OR", "car_note"),
        ("-clutch", "car_note"),
        ("{gearbox} ^ ~", "car_note"),
        ("tax\\return [draft", "tax_note"),
        ("tax-return; DROP TABLE nodes; --", "tax_note"),
        ("accountant NEAR/3 draft", "tax_note"),
        ("NEAR/3 accountant", "tax_note"),
        ("NEAR(accountant draft, 5)", "tax_note"),
        ("NOT accountant", "tax_note"),
        ("accountant OR", "tax_note"),
        ('+"accountant"~2', "tax_note"),
        ("accountant^4 AND", "tax_note"),
        ("description:accountant", "tax_note"),
        ("which form does the accountant want for the return?", "tax_note"),
    ],
)
async def test_no_character_of_a_question_is_an_operator(memory: Memory, query: str, expected: str) -> None:
    await memory.notes(
        {
            "bread_log": "Sourdough log: hydration 75 percent, levain fed overnight, rye share 10 percent.",
            "car_note": "The gearbox grinds in second gear; the workshop suspects the clutch.",
            "tax_note": "Tax return: the accountant wants form 1120 as a draft by June.",
        }
    )
    assert await first(memory, query) == expected


@pytest.mark.shared
async def test_reported_scripts_without_spaces(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C03")
    await play(memory, case.setup)
    results = await play(memory, case.sequence)
    assert firsts(results) == ["zh_stock", "zh_stock", "zh_stock", "zh_garden", "ja_invoice", "ko_meeting"]
    assert all(map(found_by_word, results))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("钥匙", "zh_key"),
        ("备用钥匙", "zh_key"),
        ("邮箱", "zh_mail"),
        ("解約", "ja_contract"),
        ("サーバー", "ja_server"),
        ("再起動", "ja_server"),
        ("배포", "ko_release"),
        ("금요일", "ko_release"),
        ("ประชุม", "th_meeting"),
        ("วันจันทร์", "th_meeting"),
    ],
)
async def test_words_in_texts_without_spaces(memory: Memory, query: str, expected: str) -> None:
    await memory.notes(
        {
            "zh_key": "备用钥匙放在前台抽屉里，周末由保安保管。",
            "zh_mail": "公司邮箱的密码每三个月更换一次。",
            "ja_contract": "賃貸契約の解約は二か月前までに書面で連絡する",
            "ja_server": "夜間バックアップの後にサーバーを再起動する",
            "ko_release": "이번배포는금요일저녁에진행한다",
            "th_meeting": "ประชุมทีมทุกวันจันทร์ตอนเช้า",
        }
    )
    assert await first(memory, query) == expected


@pytest.mark.shared
async def test_reported_accents_and_case(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C04")
    await play(memory, case.setup)
    results = await play(memory, case.sequence)
    assert firsts(results) == [
        "meeting_pt",
        "meeting_pt",
        "cafe_order",
        "owner_billing",
        "year_vi",
        "river_vi",
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("schluessel strasse", None),
        ("hauptstrasse", "address_de"),
        ("HAUPTSTRASSE MULLER", "address_de"),
        ("schon", "train_de"),
        ("schön", "picture_de"),
        ("krizek", "person_cs"),
        ("garcon", "menu_fr"),
        ("anos", "rings_es"),
        ("años", "years_es"),
        ("ISTANBUL", "trip_tr"),
    ],
)
async def test_plain_spelling_reaches_and_exact_spelling_wins(
    memory: Memory, query: str, expected: str | None
) -> None:
    await memory.notes(
        {
            "address_de": "Paket für Frau Müller, Hauptstraße 9, Hinterhaus.",
            "picture_de": "Das Bild im Flur ist schön.",
            "train_de": "Der Zug ist schon weg.",
            "person_cs": "Jiří Křížek vede oddělení podpory.",
            "menu_fr": "Le garçon a noté la commande: crème brûlée.",
            "years_es": "El contrato dura dos años.",
            "rings_es": "El apartado sobre anos y otros términos médicos está en el anexo.",
            "trip_tr": "İstanbul gezisi ekim ayında.",
        }
    )
    if expected is None:
        # A spelling by two letters is no accent; it must not be invented, and must not fail.
        await memory.recall(query)
    else:
        assert await first(memory, query) == expected


@pytest.mark.shared
async def test_reported_identifiers(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C07")
    await play(memory, case.setup)
    results = await play(memory, case.sequence)
    assert firsts(results) == [
        "fn_rotate",
        "fn_leases",
        "cls_payroll",
        "cls_payroll",
        "cls_payroll",
        "err_lease",
        "err_lease",
        "fn_rotate",
    ]
    assert all(map(found_by_word, results))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("flush pending uploads", "fn_flush"),
        ("flush_pending_uploads", "fn_flush"),
        ("flushPendingUploads", "fn_flush"),
        ("http retry client", "cls_client"),
        ("HTTPRetryClient", "cls_client"),
        ("E4013", "err_quota"),
        ("err_quota_4013", "err_quota"),
        ("quota exceeded", "err_quota"),
        ("10.4.2.19", "host_db"),
        ("db-primary-03", "host_db"),
        ("v2.14.0", "release_two"),
        ("kx7-440-b", "part_valve"),
        ("host db", "host_db"),
    ],
)
async def test_identifiers_are_found_whole_and_in_parts(memory: Memory, query: str, expected: str) -> None:
    await memory.notes(
        {
            "fn_flush": "flushPendingUploads() empties the outbox before the process ends.",
            "cls_client": "HTTPRetryClient wraps every outgoing call of the importer.",
            "err_quota": "ERR_QUOTA_4013 (shown as E4013): the storage quota is exceeded.",
            "host_db": "The primary database answers at 10.4.2.19, name db-primary-03.",
            "release_two": "Release v2.14.0 drops the legacy importer.",
            "part_valve": "Spare valve, part KX7-440-B, two in stock.",
        }
    )
    assert await first(memory, query) == expected


async def test_the_whole_identifier_outranks_a_part_of_it(memory: Memory) -> None:
    await memory.notes(
        {
            "fn_whole": "rotate_audit_keys is called by the night job.",
            "fn_part": "Audit of the keys: rotate them, audit again, rotate keys, keys, keys.",
        }
    )
    assert await memory.keys("rotate_audit_keys") != []
    assert (await memory.keys("rotate_audit_keys"))[0] == "fn_whole"
    assert (await memory.keys("rotateAuditKeys"))[0] == "fn_whole"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("when does the policy of the van expire?", "file_insurance"),
        ("what is the number of the policy?", "file_insurance"),
        ("Anselm Brückner", "contract_printer"),
        ("who is the contact for the printer contract?", "contract_printer"),
        ("which supplier delivers the toner?", "contract_printer"),
        ("project osprey", "project_osprey"),
        ("what is part of the osprey project?", "task_fence"),
    ],
)
async def test_all_that_belongs_to_a_memory_is_searched(memory: Memory, query: str, expected: str) -> None:
    await memory.store(
        "file_insurance",
        "A scanned letter of three pages.",
        search_text="The policy 88-1204 of the delivery van expires at the end of October.",
    )
    await memory.store(
        "contract_printer",
        "The printers are rented for three years.",
        data={"contact": "Anselm Brückner", "toner": {"supplier": "Halvorsen", "minimum": 4}},
    )
    await memory.store("project_osprey", "Everything about the new car park.")
    await memory.store(
        "task_fence",
        "The fence is built before the barrier.",
        {"to_key": "project_osprey", "relationship": "is part of the osprey project"},
    )
    assert expected in (await memory.keys(query))[:2]
