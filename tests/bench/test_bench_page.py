"""The page: well-formed, self-contained, complete, and honest about what was not measured."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.page import write_page
from bench.page.chart import for_page
from bench.page.limits import limits
from bench.page.numerals import significant
from bench.page.page import reasons
from bench.page.palette import LOOKS, OTHER, in_order, look_of
from bench.page.readme import table as readme_table
from bench.page.readme import with_table
from bench.page.sections import sections
from bench.page.sections.growth import power
from bench.page.targets import Target, targets
from bench.page.winners import DistanceCase, ranking, winners
from bench.profile import FULL
from bench.results import (
    AbortCost,
    Distance,
    Floor,
    Histogram,
    Latency,
    Results,
    Skipped,
    Stall,
    Start,
    Throughput,
    ToolProduce,
    ToolTotals,
    load,
    save,
)
from bench.run import Run
from tests.bench.synthetic_results import CHARACTERS, full, quick

RESULTS = Path(__file__).parents[2] / "bench" / "results"
README = Path(__file__).parents[2] / "README.md"
OF_RUNNING_SYSTEMS = {"systems", "latency", "scaling", "plain-latency", "stall", "throughput", "aborts"}
# What a run may skip within a step: a system that it can't start.
PARTS_OF_STEPS = {"system", "starts of system"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(full(), tmp_path_factory.mktemp("page"))


def section_of(page: str, anchor: str) -> str:
    """One section's source."""
    return page.partition(f'<section id="{anchor}">')[2].partition("</section>")[0]


def written(results: Results, directory: Path) -> str:
    """The page as it is made from a result file."""
    save(results, directory / "results.json")
    write_page(load(directory / "results.json"), directory / "index.html")
    return (directory / "index.html").read_text()


# -- the whole page ------------------------------------------------------------------------------------------


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
    assert page.count("This run did not measure this") == 8
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
        ("tools", {"tools"}),
        ("systems", OF_RUNNING_SYSTEMS),
        ("system kafka fsync", OF_RUNNING_SYSTEMS),
        ("latency", {"latency", "scaling", "plain-latency"}),
        ("stall", {"stall"}),
        ("aborts", {"aborts"}),
        ("throughput", {"throughput"}),
        ("distance", {"distance"}),
        ("model", {"distance"}),
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


def test_the_summary_stands_beside_kafka_and_beside_the_machine(page: str) -> None:
    summary = section_of(page, "summary")
    assert summary.index("What a commit".lower()) < summary.index("faircopy compared with the bare machine")
    assert "at most the floor and 1.2 times a parallel fdatasync of 5 files" in summary
    assert "commit call to ack, flushed before, fsync, 16 partitions, p50" in summary
    assert "with Kafka&#39;s own client, transactions of 5 ms, send to ack, p99" in summary


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
    assert page.count("The result file gives no reason") == len(sections(results)) - 1
    assert "0 met, 0 missed, 40 not measured" in page
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


def test_the_second_client_is_shown_with_its_protocol(page: str) -> None:
    section = section_of(page, "tools")
    rows = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)
    lines = [" ".join(re.sub(r"<[^>]*>|&#160;", " ", row).split()) for row in rows]
    assert "kafka v2 1 8 15 190 45.6 820 4.1.0" in lines
    assert "local-copy fsync v1 1 8 15 190 7.56 136 4.1.0" in lines
    assert "5 5,000 local-copy os 5.12 3 6 12 40.0" in lines
    assert "Send to ack, p99: transactions of 5 ms" in section
    assert "It does not include the commit" in section


# -- targets -------------------------------------------------------------------------------------------------


def histogram(p50_ms: float, p99_ms: float) -> Histogram:
    return Histogram(1000, p50_ms, p99_ms, p99_ms, p99_ms, p50_ms, [(50.0, p50_ms), (99.0, p99_ms)])


def add_system(results: Results, system: str, factor: float) -> None:
    """Everything that targets look at; `factor` is how slow, and how large, the system is."""
    short, long = histogram(3 * factor, 10 * factor), histogram(5 * factor, 20 * factor)
    wrong = histogram(900, 900)
    results.add(
        Latency(system, 4, 16, 0, 1, 100, [1.0], long, wrong, wrong, long, wrong),
        Latency(system, 4, 1, 0, 1, 100, [1.0], long, short, long, long, long),
        Latency(system, 4, 1, 50, 1, 100, [1.0], wrong, long, wrong, wrong, wrong),
        Latency(
            system, 1, 1, 0, 3, 100, [100 / factor, 90 / factor, 500 / factor], long, short, wrong, long, long
        ),
        Latency(system, 4, 8, 0, 1, 100, [200 / factor], *[wrong] * 5),
        Latency(system, 64, 64, 0, 1, 100, [50 / factor], *[wrong] * 5),
        Stall(system, histogram(1, 2), histogram(1, 2 * factor), histogram(1, 2), 10, 40, []),
        Throughput(system, 0, 100, [1.0], [1.0], [1.0], int(90 * factor * 2**20), [1.0]),
        Throughput(system, 0, 1024, [2e8 / factor], [1.0], [1.0], int(80 * factor * 2**20), [1.0]),
        Throughput(system, 100, 1024, [1.84e8 / factor], [1.0], [1.0], int(80 * factor * 2**20), [1.0]),
        AbortCost(system, 50, 1000, 100, 500, [1.0 * factor, 2.0 * factor, 2.0 * factor], 1, 1, 1),
        Start(system, [1.0], [1.0], int(60 * factor * 2**20)),
        ToolProduce(system, 5, 0, 1024, 1e8, 900, 900, 900, 0.5),
        ToolProduce(system, 5, 5000, 1024, 5e6, int(4 * factor), 900, int(7 * factor), 0.5),
        ToolTotals(system, "4.3.1", 0, 900, 900, 900, 1e8, 20.0 * factor, int(80 * factor * 2**20)),
    )


def test_targets_of_a_case_made_by_hand() -> None:
    results = Results({})
    results.floors = [Floor("parallel fdatasync of 5 files", 1.0, "ms", "")]
    add_system(results, "local-copy fsync", 1)
    add_system(results, "kafka", 4)
    add_system(results, "none fsync", 0.9)
    by_fsync = [each for each in targets(results) if each.durability == "fsync"]
    assert [(each.ours, each.kafka, each.ratio, each.verdict) for each in by_fsync] == [
        (3.0, 12.0, pytest.approx(3 / 2.7), "met"),
        (10.0, 40.0, 0.25, "met"),
        (5.0, 20.0, pytest.approx(5 / 4.5), "met"),
        (20.0, 80.0, 0.25, "met"),
        (5.0, 20.0, pytest.approx(5 / (4.5 + 1.2)), "met"),
        (20.0, 80.0, pytest.approx(20 / (18 + 1.2)), "missed"),
        (5.0, 20.0, pytest.approx(5 / 4.5), "met"),
        (2.0, 8.0, 1.0, "met"),
        (200.0, 50.0, 4.0, "met"),
        (pytest.approx(8.0), pytest.approx(8.0), pytest.approx(0.08), "met"),
        (100.0, 25.0, 4.0, "met"),
        (200.0, 50.0, 4.0, "met"),
        (50.0, 12.5, 4.0, "met"),
        (250.0, 62.5, 4.0, "met"),
        (60.0, 240.0, 0.25, "met"),
        (90.0, 360.0, 0.25, "met"),
        (4.0, 16.0, 0.25, "met"),
        (7.0, 28.0, 0.25, "met"),
        (20.0, 80.0, 0.25, "met"),
        (80.0, 320.0, 0.25, "met"),
    ]
    floors = [each.floor for each in by_fsync if each.floor is not None]
    assert floors == pytest.approx([2.7, 9, 4.5, 18, 4.5, 18, 4.5, 100 / 0.9, 200 / 0.9])
    by_os = [each for each in targets(results) if each.durability == "os"]
    assert {(each.ours, each.ratio, each.verdict) for each in by_os} == {(None, None, "not measured")}


def test_targets_are_missed_by_a_hair() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 2.9)
    verdicts = {each.figure: each.verdict for each in targets(results) if each.durability == "os"}
    assert verdicts["commit call to ack, 4 partitions, p50"] == "not measured"
    assert verdicts["commit call to ack, 4 partitions, p99"] == "missed"
    assert verdicts["plain produce, messages of 1 KiB"] == "met"
    assert verdicts["transactions of one message, one producer"] == "met"
    assert verdicts["memory when idle"] == "missed"


@pytest.mark.parametrize(("factor", "verdict"), [(1.19, "met"), (1.21, "missed")])
def test_what_the_client_takes_by_itself_is_the_floor(factor: float, verdict: str) -> None:
    results = Results({})
    add_system(results, "local-copy os", factor)
    add_system(results, "none os", 1)
    found = {
        each.figure: each for each in targets(results) if each.durability == "os" and each.ratio is not None
    }
    near = [each for each in found.values() if each.aim == "at most 1.2 times the floor"]
    assert len(near) == 6
    assert {each.verdict for each in near} == {verdict}


def test_a_flushed_commit_under_fsync_may_take_the_floor_and_the_disk() -> None:
    figure = "the same, flushed before the call, p50"
    verdicts = {}
    for sync_ms in (4.1, 4.2, None):
        results = Results({})
        add_system(results, "local-copy fsync", 2)
        add_system(results, "none fsync", 1)
        if sync_ms is not None:
            results.floors = [Floor("parallel fdatasync of 5 files", sync_ms, "ms", "")]
        verdicts[sync_ms] = next(
            each.verdict for each in targets(results) if (each.figure, each.durability) == (figure, "fsync")
        )
    assert verdicts == {4.1: "missed", 4.2: "met", None: "not measured"}


@pytest.mark.parametrize(("kafka", "verdict"), [(1.01, "met"), (0.99, "missed")])
def test_many_producers_are_held_against_kafka_without_fsync(kafka: float, verdict: str) -> None:
    results = Results({})
    add_system(results, "local-copy fsync", 1)
    add_system(results, "kafka", kafka)
    add_system(results, "kafka fsync", 100)
    rates = [each for each in targets(results) if each.unit == "1/s" and each.durability == "fsync"]
    assert [(each.figure, each.verdict) for each in rates] == [
        ("transactions of one message, one producer", verdict),
        ("transactions of 4 partitions, 8 producers", verdict),
        ("transactions of 64 partitions, 64 producers", verdict),
    ]


def test_latency_of_the_second_client_is_that_at_a_pace() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 1.5)
    found = {each.figure: (each.ours, each.kafka) for each in targets(results) if each.durability == "os"}
    assert found["with Kafka's own client, transactions of 5 ms, send to ack, p50"] == (4, 6)
    assert found["with Kafka's own client, transactions of 5 ms, send to ack, p99"] == (7, 10)
    assert found["with Kafka's own client, CPU of the broker"] == (20, 30)


def test_without_kafka_only_what_needs_it_is_not_measured() -> None:
    results = Results({})
    add_system(results, "local-copy fsync", 1)
    measured = {each.figure for each in targets(results) if each.verdict != "not measured"}
    assert measured == {
        "others' delivery while a transaction hangs, p99",
        "what a commit each 100 ms costs a producer",
    }


def test_a_measure_without_a_single_time_wins_nothing() -> None:
    results = Results({})
    nothing = Histogram(0, 0.0, 0.0, 0.0, 0.0, 0.0, [])
    results.floors = [Floor("parallel fdatasync of 5 files", 1.0, "ms", "")]
    for system in ("local-copy fsync", "kafka"):
        results.add(
            *(Latency(system, count, 1, 0, 1, 0, [1.0], *[nothing] * 5) for count in (1, 4, 16)),
            Stall(system, histogram(1, 2), nothing, nothing, 10, 40, []),
        )
    assert limits(results) == []
    measured = {each.figure for each in targets(results) if each.verdict != "not measured"}
    assert measured == {"transactions of one message, one producer"}


def test_aims_read_as_they_are_written() -> None:
    found: list[Target] = targets(Results({}))
    aims = {each.aim for each in found}
    assert {
        "at most Kafka's",
        "at most 1/3 of Kafka's",
        "at most 1/2 of Kafka's",
        "at most 1.2 times the floor",
        "at most the floor and 1.2 times a parallel fdatasync of 5 files",
        "at most 1.05 times its own before",
        "at least 0.7 of Kafka's",
        "at least 1.2 times Kafka's",
        "at most 1/10 of its speed without",
        "at least Kafka's",
        "at least 1.5 times Kafka's",
        "at most 1/4 of Kafka's",
    } == aims


# -- parts ---------------------------------------------------------------------------------------------------


def test_winners_are_the_fastest_and_those_level_with_it() -> None:
    rows = [
        Distance("local-copy", False, "", "", 1, 2, 0.01, 4, 5.0, 9.0),
        Distance("parallel-prepare", False, "", "", 1, 2, 0.01, 4, 5.001, 11.0),
        Distance("markers", False, "", "", 1, 2, 0.01, 4, 6.0, 8.5),
        Distance("none", False, "", "", 1, 2, 0.01, 4, 3.0, 3.0),
        Distance("markers", True, "", "", 1, 2, 0.01, 4, 8.0, 8.0),
    ]
    by_commit = ranking(rows)
    assert [each.protocol for each in winners(by_commit[DistanceCase(False, 1, 2, 4)])] == [
        "local-copy",
        "parallel-prepare",
    ]
    assert [each.protocol for each in winners(by_commit[DistanceCase(True, 1, 2, 4)])] == ["markers"]
    by_visible = ranking(rows, by_visible=True)
    assert [each.protocol for each in by_visible[DistanceCase(False, 1, 2, 4)]] == [
        "markers",
        "local-copy",
        "parallel-prepare",
    ]


def test_fitted_powers() -> None:
    assert power([(10, 3.0), (100, 30.0), (1000, 300.0)]) == pytest.approx(1)
    assert power([(10, 3.0), (1000, 3.0)]) == pytest.approx(0)
    assert power([(10, 3.0), (1000, 30.0)]) == pytest.approx(0.5)
    assert power([(10, 3.0)]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.012345, "0.0123"), (4.5678, "4.57"), (12345.6, "12,300"), (0.99996, "1.00"), (100.0, "100"),
        (0, "0"), (None, "–"), (float("inf"), "–"), (-2.5, "-2.50"),
    ],
)  # fmt: skip
def test_figures_have_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_systems_have_looks_of_their_own() -> None:
    assert len({look.light for look in LOOKS}) == len({look.dark for look in LOOKS}) == len(LOOKS)
    assert look_of("markers") is look_of("markers fsync")
    assert look_of("a stranger") is OTHER
    assert in_order(["zebra", "kafka", "local-copy fsync", "kafka"]) == ["local-copy fsync", "kafka", "zebra"]


def test_a_chart_is_made_fit_for_the_page() -> None:
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="10pt" height="5pt" viewBox="0 0 10 5">'
        '<!-- made --><g id="a">'
        "<text style=\"font: 9px 'DejaVu Sans', sans-serif; fill: #101112\">1</text></g>"
        '<use xlink:href="#a" clip-path="url(#a)" style="stroke: #0072b2"/></svg>'
    )
    assert for_page(svg, "plot") == (
        '<svg aria-hidden="true" focusable="false" viewBox="0 0 10 5"><g id="plot-a">'
        '<text style="font: 9px system-ui, sans-serif; fill: currentColor">1</text></g>'
        '<use xlink:href="#plot-a" clip-path="url(#plot-a)"'
        ' style="stroke: var(--system-local-copy-fsync)"/></svg>'
    )


def test_the_readme_has_the_figures_of_the_committed_run() -> None:
    readme = README.read_text()
    assert with_table(readme, load(RESULTS / "full.json")) == readme, "run `python -m bench readme`"


def test_the_table_of_the_readme_says_what_was_not_measured() -> None:
    table = readme_table(Results({}))
    assert "nan" not in table
    assert table.count("–") >= 4
