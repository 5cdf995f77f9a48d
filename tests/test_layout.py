"""The rules of the layout: who may import whom, which modules are pure, which names there may not be."""

from __future__ import annotations

import ast
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "faircopy"
MODULES = sorted(ROOT.rglob("*.py"))
ARCHITECTURE = ROOT.parent / "docs" / "ARCHITECTURE.md"

GROUND = {"storage", "loop", "wire", "settings"}
LOGS = GROUND | {"journal", "datalog", "copier", "partition"}
SERVED = LOGS | {"cluster", "net", "transactions", "groups", "hosting", "shard"}
BROKER = SERVED | {"publish", "serving", "api"}
MAY_IMPORT = {
    "storage": set(),
    "wire": set(),
    "settings": set(),
    "loop": {"storage"},
    "net": GROUND,
    "journal": {"storage", "loop"},
    "datalog": {"storage", "wire"},
    "copier": {"journal", "datalog", "storage", "wire"},
    "partition": {"copier", "datalog", "journal", "storage", "wire"},
    "cluster": {"journal", "storage", "settings"},
    "publish": {"wire", "settings"},
    "transactions": LOGS,
    "groups": LOGS,
    "hosting": LOGS | {"cluster", "publish", "transactions", "groups"},
    "shard": LOGS | {"cluster", "transactions", "groups", "hosting"},
    "serving": SERVED,
    "api": SERVED | {"serving"},
    "broker": BROKER,
    "client": {"wire"},
    "spark": {"wire", "client", "publish"},
    "verify": BROKER | {"broker"},
    "backup": {"storage", "cluster"},
    "cli": BROKER | {"broker", "client", "spark", "verify", "backup"},
}
FOR_ALL = {"errors", "__version__"}

BENCH = ROOT.parent / "bench"
OF_BENCH = sorted(BENCH.rglob("*.py"))
DOCUMENTED = [*MODULES, *OF_BENCH]
Function = ast.FunctionDef | ast.AsyncFunctionDef

PURE = [
    "wire",
    "settings/table.py",
    "storage/failures.py",
    "storage/sealed.py",
    "storage/store_page.py",
    "datalog/checked.py",
    "datalog/epochs.py",
    "verify/findings.py",
    "journal/entry.py",
    "journal/format_3.py",
    "journal/format_4.py",
    "journal/formats.py",
    "journal/watermarks.py",
    "transactions/metadata_entry.py",
    "backup/manifest.py",
    "copier/fold.py",
    "copier/producers.py",
    "copier/checkpoint.py",
    "copier/span_chunk.py",
    "hosting/largest_cut.py",
    "cluster/topic_configs.py",
    "cluster/lease.py",
    "cluster/shard_record.py",
    "cluster/store_copy.py",
    "transactions/connections.py",
    "transactions/decisions.py",
    "transactions/joint_decisions.py",
    "transactions/joint_group.py",
    "transactions/numbers.py",
    "transactions/order.py",
    "shard/placement.py",
    "transactions/state.py",
    "transactions/table.py",
    "transactions/timeouts.py",
    "transactions/transaction.py",
    "partition/participant.py",
    "groups/group_state.py",
    "groups/join_wait.py",
    "groups/membership.py",
    "groups/roster.py",
    "groups/storing.py",
    "groups/group_metadata.py",
    "net/frames.py",
    "net/admission.py",
    "client/protocol.py",
    "client/outgoing.py",
    "spark/options.py",
    "spark/partitioning.py",
    "spark/splits.py",
    "spark/subscription.py",
    "spark/record_batches.py",
    "spark/varints.py",
    "publish/spark_log.py",
    "publish/compaction.py",
    "publish/layout.py",
    "publish/parquet_footer.py",
    "publish/same_checksum.py",
    "settings/columns.py",
]
IMPURE = {
    "os",
    "io",
    "time",
    "random",
    "secrets",
    "socket",
    "threading",
    "asyncio",
    "subprocess",
    "datetime",
    "tempfile",
}
# Doors to which only storage/ has the keys, and what runs in other processes: the client, and
# publish/files.py, which must not import what storage/ needs. `asyncio` is not one: shells live on the loop
# that they are given.
ONLY_STORAGE = {"lmdb", "fcntl", "threading", "mmap"}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "types", "misc"}
LINES_AT_MOST = 500


def modules_imported(path: Path) -> set[Path]:
    """The modules of ours that a module imports, also for typing's sake."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        found |= {(ROOT.parent / name.replace(".", "/")).with_suffix(".py") for name in names_in(node)}
    return found & set(MODULES)


def names_in(node: ast.AST) -> set[str]:
    """What a statement may import: of `from a import b`, both `a` and `a.b`, since `b` may be a module."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert not node.level, "a relative import"
        return {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return set()


def in_circles(arrows: dict[Path, set[Path]]) -> set[Path]:
    """Those from which the arrows lead back to themselves."""
    reached = {module: set(targets) for module, targets in arrows.items()}
    for middle in arrows:
        for module in arrows:
            if middle in reached[module]:
                reached[module] |= reached[middle]
    return {module for module in arrows if module in reached[module]}


def imports(path: Path) -> set[str]:
    """Full names of what a module imports, but for typing's sake."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) not in typing_only:
            found |= names_in(node)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_product_knows_neither_tests_nor_rivals(path: Path) -> None:
    """Nor has it a door for them: only the command line, whose commands are a table, imports by name."""
    found = imports(path)
    assert not {name.split(".")[0] for name in found} & {"tests", "bench"}
    assert "importlib" not in found or path == ROOT / "cli" / "main.py"


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_import_directions(path: Path) -> None:
    part = part_of(path)
    if part not in MAY_IMPORT:
        return
    for name in imports(path):
        if name.startswith("faircopy."):
            imported = name.split(".")[1]
            assert imported in {part} | MAY_IMPORT[part] | FOR_ALL, f"{part} must not import {name}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Not for typing's sake either."""
    found = in_circles({path: modules_imported(path) for path in MODULES})
    assert {str(path.relative_to(ROOT)) for path in found} == set()


def test_each_part_is_described() -> None:
    parts = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    described = re.findall(r"^\| `(\w+)/` ", ARCHITECTURE.read_text(), re.MULTILINE)
    assert parts == MAY_IMPORT.keys() == set(described)
    assert len(described) == len(parts)


@pytest.mark.parametrize("pure", PURE)
def test_pure_modules_do_no_io(pure: str) -> None:
    place = ROOT / pure
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert paths
    for path in paths:
        impure = {name.split(".")[0] for name in imports(path)} & IMPURE
        assert not impure, f"{path.relative_to(ROOT)} is to be pure, and imports {impure}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_storage_opens_the_doors(path: Path) -> None:
    if part_of(path) not in ("storage", "cli", "client") and path != ROOT / "publish" / "files.py":
        assert not {name.split(".")[0] for name in imports(path)} & ONLY_STORAGE


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_and_sizes(path: Path) -> None:
    assert path.stem not in FORBIDDEN_NAMES
    assert len(path.read_text().splitlines()) <= LINES_AT_MOST


def test_a_class_has_its_name_alone() -> None:
    """One name, one thing. A class that only type checkers see is the same thing, twice in one file."""
    where: dict[str, set[Path]] = {}
    for path in MODULES:
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef):
                where.setdefault(each.name, set()).add(path)
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


# -- what is cited -------------------------------------------------------------------------------------------

COLUMNS_MAX = 110
PAGES = sorted(
    [*(ROOT.parent / "docs").glob("*.md"), *ROOT.parent.glob("*.md"), ROOT.parent / "bench" / "README.md"]
)
CITING = [*DOCUMENTED, *sorted((ROOT.parent / "tests").rglob("*.py")), *PAGES]
CITED = re.compile(r"docs/([A-Z_]+\.md)(?:, ([A-Z][\w ,-]+?)(?=[).;:\n]))?")
OF_ELSEWHERE = re.compile(r"\b(DESIGN|LAYOUT|CLUSTER_RULES)\b(, section|\.md| \d|;|\))")


def headings(page: Path) -> set[str]:
    """The headings of a page."""
    return {line.lstrip("#").strip() for line in page.read_text().splitlines() if line.startswith("#")}


@pytest.mark.parametrize("path", CITING, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_what_is_cited_is_there(path: Path) -> None:
    text = path.read_text()
    if path != Path(__file__):
        assert not OF_ELSEWHERE.search(text)
    for page, section in CITED.findall(text):
        cited = ROOT.parent / "docs" / page
        assert cited.exists(), page
        assert not section or section in headings(cited), f"{page} has no section {section!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_pages_are_short(page: Path) -> None:
    """A table's row can't be wrapped."""
    lines = [line for line in page.read_text().splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > COLUMNS_MAX and "](http" not in line] == []


RULE = re.compile(r"\b([PI]\d+)(?:-[PI]?(\d+))?\b")
PROMISES = re.findall(r"^(\d+)\. ", (ROOT.parent / "README.md").read_text(), re.MULTILINE)
INVARIANTS = re.findall(
    r"^\* (I\d+)\. ", (ROOT.parent / "docs" / "ARCHITECTURE.md").read_text(), re.MULTILINE
)
RULES = {*(f"P{number}" for number in PROMISES), *INVARIANTS}


def test_rules_are_numbered_without_gaps() -> None:
    assert [f"P{number}" for number in PROMISES] == [f"P{number}" for number in range(1, 9)]
    assert [f"I{number}" for number in range(1, 11)] == INVARIANTS


@pytest.mark.parametrize("path", CITING, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_rules_that_are_cited_are_there(path: Path) -> None:
    cited = {rule for rule, _ in RULE.findall(path.read_text())}
    assert cited <= RULES


# -- docstrings ----------------------------------------------------------------------------------------------


def bases_of(node: ast.ClassDef) -> list[str]:
    """The names of a class's bases, without what they are parametrised with."""
    return [ast.unparse(base).split("[")[0] for base in node.bases]


def all_classes() -> Iterator[ast.ClassDef]:
    for path in DOCUMENTED:
        yield from (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))


def documented_methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, Function) and ast.get_docstring(each)}


CLASSES: dict[str, list[ast.ClassDef]] = {}
for each_class in all_classes():
    CLASSES.setdefault(each_class.name, []).append(each_class)
OF_PROTOCOLS = {
    name for node in all_classes() if "Protocol" in bases_of(node) for name in documented_methods(node)
}


def is_inherited(node: ast.ClassDef, method: str) -> bool:
    """Whether a base class documents the method: one of ours by a docstring, or one of another's library."""
    for base in bases_of(node):
        ours = [each for each in CLASSES.get(base, []) if each.name != node.name]
        if any(method in documented_methods(each) or is_inherited(each, method) for each in ours):
            return True
        if "." in base and hasattr(pydoc.locate(base), method):
            return True
    return False


def undocumented_in(node: ast.ClassDef) -> Iterator[str]:
    """Methods that nothing documents: neither they, nor a base, nor a Protocol that a class need not name."""
    for each in node.body:
        if not isinstance(each, Function) or each.name.startswith("_") or ast.get_docstring(each):
            continue
        if each.name not in OF_PROTOCOLS and not is_inherited(node, each.name):
            yield f"{node.name}.{each.name}"


def undocumented(path: Path) -> Iterator[str]:
    """Public names of a module that have no docstring. The name of a test is its docstring."""
    module = ast.parse(path.read_text())
    if module.body and not ast.get_docstring(module):
        yield path.stem
    for node in module.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith(("_", "test_")):
            continue
        if not ast.get_docstring(node):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from undocumented_in(node)


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    assert list(undocumented(path)) == []
