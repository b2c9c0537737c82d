"""Reads what `/metrics` answers."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.surfaces.serving import Served


async def scraped(api: Served) -> str:
    response = await api.anonymous.get("/metrics")
    assert response.status_code == 200, response.text
    return response.text


async def values(api: Served, name: str) -> dict[tuple[str, ...], float]:
    """Values of the labels, in the order of the labels' names -> value of one sample name."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(await scraped(api))
        for sample in family.samples
        if sample.name == name
    }


def names(text: str) -> dict[str, str]:
    """Name of each metric as it is written in queries -> its type."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in text_string_to_metric_families(text)
    }
