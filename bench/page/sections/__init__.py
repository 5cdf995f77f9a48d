"""The sections of the page, one file each: a function from results to a section."""

from bench.page.document import Section
from bench.page.sections.aborts import aborts
from bench.page.sections.floors import floors
from bench.page.sections.growth import growth
from bench.page.sections.latency import latency
from bench.page.sections.plain_latency import plain_latency
from bench.page.sections.plain_tables import plain_tables
from bench.page.sections.replica_sets import replica_sets
from bench.page.sections.scaling import scaling
from bench.page.sections.spark import spark
from bench.page.sections.stall import stall
from bench.page.sections.starts import starts
from bench.page.sections.summary import summary
from bench.page.sections.systems import systems
from bench.page.sections.throughput import throughput
from bench.page.sections.tools import tools
from bench.results import Results

IN_ORDER = (
    summary, systems, latency, scaling, plain_latency, stall, throughput, tools, replica_sets, aborts,
    spark, plain_tables, starts, growth, floors,
)  # fmt: skip


def sections(results: Results) -> list[Section]:
    """All of them, in the page's order."""
    return [section(results) for section in IN_ORDER]
