"""The page: well-formed, self-contained, complete, and honest about what was not measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.page import write_page
from bench.page.page import reasons
from bench.page.palette import look_of
from bench.page.sections import sections
from bench.profile import FULL
from bench.results import Results, Skipped, load, save
from bench.run import Run
from tests.bench.synthetic_results import CHARACTERS, full, quick

OF_RUNNING_SYSTEMS = {"systems", "latency", "scaling", "plain-latency", "stall", "throughput", "aborts"}
# What a run may skip within a step: a system that it can't start.
PARTS_OF_STEPS = {"system", "starts of system"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(full(), tmp_path_factory.mktemp("page"))


def section_of(page: str, anchor: str) -> str:
    """One section's source."""
    return page.partition(f'<section id="{anchor}">')[2].partition("</section>")[0]


def rows_of(section: str) -> list[str]:
    """The text of each row of a section's tables."""
    rows = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>|&#160;", " ", row).split()) for row in rows]


def written(results: Results, directory: Path) -> str:
    """The page as it is made from a result file."""
    save(results, directory / "results.json")
    write_page(load(directory / "results.json"), directory / "index.html")
    return (directory / "index.html").read_text()


def test_the_page_is_well_formed(page: str) -> None:
    root = ElementTree.fromstring(page)
    identifiers = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(identifiers) == len(set(identifiers))


def test_every_link_leads_somewhere(page: str) -> None:
    root = ElementTree.fromstring(page)
    identifiers = {element.get("id") for element in root.iter()}
    links = {value for element in root.iter() for name, value in element.items() if name.endswith("href")}
    links |= {f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", page)}
    assert {link for link in links if link[0] != "#" or link[1:] not in identifiers} == set()


def test_the_page_loads_nothing(page: str) -> None:
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert re.findall(r"https?:|//\w|@import|<script|<link|<img|src=", without_namespaces) == []


def test_the_page_shows_every_system_and_every_section(page: str) -> None:
    for character in CHARACTERS:
        assert f"> {character.name}</li>" in page
        assert page.count(f"var({look_of(character.name).variable})") > 20
    assert "This run did not measure this" not in page
    assert '<td class="number">7,600</td>\n<td class="">MB/s</td>' in page
    for section in sections(Results({})):
        assert f'<a href="#{section.anchor}">{section.title}</a>' in page


def test_every_plot_has_words_for_those_who_do_not_see_it(page: str) -> None:
    root = ElementTree.fromstring(page)
    pictures = [element for element in root.iter() if element.get("role") == "img"]
    assert len(pictures) > 40
    assert all(len(picture.get("aria-label", "")) > 40 for picture in pictures)


def test_no_chart_has_a_colour_that_the_style_sheet_does_not_know(page: str) -> None:
    charts = "".join(re.findall(r'<div role="img".*?</figure>', page, re.DOTALL))
    assert set(re.findall(r"#[0-9a-f]{6}\b", charts)) == set()


def test_the_page_can_be_made_again(tmp_path: Path) -> None:
    assert written(quick(), tmp_path) == written(quick(), tmp_path)


def test_a_quick_run_says_what_it_did_not_measure(tmp_path: Path) -> None:
    page = written(quick(), tmp_path)
    ElementTree.fromstring(page)
    assert "growth: the quick profile" in page
    assert page.count("This run did not measure this") == 10
    assert "Some of this was not measured. system kafka: no Java 17 or newer was found." in section_of(
        page, "latency"
    )
    assert "starts of system kafka: no Java 17 or newer was found." in section_of(page, "starts")


@pytest.mark.parametrize(
    ("what", "shown_in"),
    [
        ("floors", {"floors"}),
        ("starts", {"starts"}),
        ("starts of system kafka", {"starts", "growth"}),
        ("growth", {"growth"}),
        ("growth: kafka with 1,000 partitions", {"growth"}),
        ("Spark", {"spark"}),
        ("plain tables", {"plain-tables"}),
        ("tools", {"tools"}),
        ("sets", {"replica-sets"}),
        ("sets: kafka set", {"replica-sets"}),
        ("systems", OF_RUNNING_SYSTEMS),
        ("system kafka fsync", OF_RUNNING_SYSTEMS),
        ("latency", {"latency", "scaling", "plain-latency"}),
        ("stall", {"stall"}),
        ("aborts", {"aborts"}),
        ("throughput", {"throughput"}),
    ],
)
def test_reasons_stand_where_something_is_missing(what: str, shown_in: set[str]) -> None:
    results = Results({})
    results.skipped = [
        Skipped(what, "failed: it was dark.\nIn the log:\nnothing"),
        Skipped(what, "failed: it was dark"),
    ]
    shown = {section.anchor: reasons(results, section.steps) for section in sections(results)}
    assert {anchor for anchor, found in shown.items() if found} == shown_in
    assert {tuple(found) for found in shown.values() if found} == {(Skipped(what, "failed: it was dark"),)}


def test_every_step_of_a_run_has_a_section(tmp_path: Path) -> None:
    steps = {name for name, _ in Run(FULL, Results({}), tmp_path, 1).steps()}
    assert steps == {step for section in sections(Results({})) for step in section.steps} - PARTS_OF_STEPS


def test_the_summary_says_who_is_ahead(page: str) -> None:
    summary = section_of(page, "summary")
    assert "Of 36 comparisons, faircopy is ahead in" in summary
    assert "with Kafka&#39;s own client, transactions of 5 ms, send to ack, p99" in summary
    assert '<td class="good" data-column="Ahead">faircopy, ' in summary
    assert not {"Target", "Aim", "Verdict", "met", "missed"} & set(re.findall(r"\w+", summary))


def test_the_stall_says_that_it_is_a_single_run(page: str) -> None:
    stall = section_of(page, "stall")
    assert re.search(
        r"was run once, for about 60 seconds: 1\d before the transaction, 30 while it hangs", stall
    )
    assert "of a single run" in stall


def test_an_empty_run_makes_a_page(tmp_path: Path) -> None:
    results = Results({})
    page = written(results, tmp_path)
    ElementTree.fromstring(page)
    assert page.count("The result file gives no reason") == len(sections(results))
    assert "Nothing was skipped" in page


def test_what_a_result_file_says_is_text(tmp_path: Path) -> None:
    results = Results({"machine": "<b>& 'quick'</b>", "nested": {"cores": 2, "list": [1, "two"]}})
    results.skipped = [Skipped("spark", "</p><script>alert(1)</script>")]
    page = written(results, tmp_path)
    ElementTree.fromstring(page)
    assert "<script" not in page
    assert "<b>" not in page
    assert "cores 2, list 1, two" in page


def test_a_file_from_before_a_measure_makes_its_page(tmp_path: Path) -> None:
    results = full()
    del results.rows["ToolProduce"], results.rows["ToolTotals"]
    section = section_of(written(results, tmp_path), "tools")
    assert "This run did not measure this" in section
    assert "<table" not in section


def test_rows_of_a_measure_that_is_gone_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(Results({}), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"Distance": [{"protocol": "markers"}]}))
    assert "Distance" not in load(path).rows


def test_the_second_client_is_shown_with_its_protocol(page: str) -> None:
    section = section_of(page, "tools")
    lines = rows_of(section)
    assert "kafka v2 1 8 15 190 45.6 820 4.1.0" in lines
    assert "local-copy fsync v1 1 8 15 190 7.56 136 4.1.0" in lines
    assert "5 5,000 local-copy os 5.12 3 6 12 40.0" in lines
    assert "Send to ack, p99: transactions of 5 ms" in section
    assert "It does not include the commit" in section


def test_replica_sets_are_shown_beside_one_broker_and_by_process(page: str) -> None:
    rows = rows_of(section_of(page, "replica-sets"))
    assert "Figure Unit local-copy fsync replica set fsync kafka set" in rows
    assert "4 partitions, 1 producer: CPU of all processes for one ms 1.50 1.50 1.50" in rows
    assert "CPU of all processes for a GB of these s 2.50 7.50 7.50" in rows
    assert "memory of all processes, the sum of their peaks MiB 80.0 240 240" in rows
    assert any(row.startswith("4 partitions, 1 producer, a pause of 50 ms: transactions 1/s") for row in rows)
    assert "replica set fsync follower 3 2.50 80.0" in rows
