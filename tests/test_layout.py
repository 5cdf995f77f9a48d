"""The rules of the layout: who may import whom, which modules are pure, which names there may not be.

Each rule is one test, which names every place that breaks it.
"""

from __future__ import annotations

import ast
import functools
import pydoc
import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

from tests.jobs.table import JOBS, files_with_tests, job_of

ROOT = Path(__file__).parent.parent / "faircopy"
MODULES = sorted(ROOT.rglob("*.py"))
ARCHITECTURE = ROOT.parent / "docs" / "ARCHITECTURE.md"

GROUND = {"storage", "loop", "wire", "settings"}
LOGS = GROUND | {"journal", "datalog", "copier", "partition"}
SERVED = LOGS | {"catalogue", "net", "transactions", "groups", "hosting", "shard"}
BROKER = SERVED | {"publish", "serving", "api", "arbiter", "replication"}
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
    "catalogue": {"journal", "storage", "loop", "settings"},
    "arbiter": {"storage", "wire", "settings"},
    "replication": {"journal", "arbiter", "storage", "loop", "wire", "settings"},
    "publish": {"wire", "settings", "storage"},
    "transactions": LOGS,
    "groups": LOGS,
    "hosting": LOGS | {"catalogue", "publish", "transactions", "groups"},
    "shard": LOGS | {"catalogue", "transactions", "groups", "hosting"},
    "serving": SERVED,
    "api": SERVED | {"serving"},
    "faults": SERVED | {"serving", "api"},
    "broker": BROKER | {"faults"},
    "client": {"wire"},
    "testing": {"client", "wire"},
    "spark": {"wire", "client", "publish"},
    "verify": BROKER | {"broker"},
    "backup": {"storage", "arbiter"},
    "cli": BROKER | {"faults", "broker", "client", "verify", "backup"},
}
FOR_ALL = {"errors", "__version__"}

BESIDE = [path for folder in ("bench", "demo") for path in sorted((ROOT.parent / folder).rglob("*.py"))]
DOCUMENTED = [*MODULES, *BESIDE]
Function = ast.FunctionDef | ast.AsyncFunctionDef

PURE = [
    "wire",
    "settings/table.py",
    "storage/failures.py",
    "storage/sealed.py",
    "datalog/checked.py",
    "storage/epoch_history.py",
    "verify/findings.py",
    "verify/state_page.py",
    "journal/entry.py",
    "journal/entry_format.py",
    "journal/watermarks.py",
    "transactions/metadata_entry.py",
    "backup/manifest.py",
    "copier/fold.py",
    "copier/producers.py",
    "copier/checkpoint.py",
    "copier/span_chunk.py",
    "hosting/largest_cut.py",
    "catalogue/topic_configs.py",
    "arbiter/address.py",
    "arbiter/lease.py",
    "arbiter/record.py",
    "arbiter/directory_note.py",
    "arbiter/joining.py",
    "arbiter/store_copy.py",
    "replication/acknowledged.py",
    "replication/body.py",
    "replication/entry_reader.py",
    "replication/errors.py",
    "replication/frames.py",
    "replication/histories.py",
    "replication/in_sync.py",
    "replication/life.py",
    "replication/message_format.py",
    "replication/messages.py",
    "replication/proof.py",
    "replication/sets_in_force.py",
    "replication/soundness.py",
    "replication/timing.py",
    "transactions/connections.py",
    "transactions/decisions.py",
    "transactions/joint_decisions.py",
    "transactions/joint_group.py",
    "transactions/numbers.py",
    "transactions/order.py",
    "transactions/producers.py",
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
    "net/gate.py",
    "faults/fault.py",
    "faults/asked.py",
    "faults/refusal.py",
    "faults/plan.py",
    "client/protocol.py",
    "client/outgoing.py",
    "client/codecs.py",
    "client/division.py",
    "spark/options.py",
    "spark/partitioning.py",
    "spark/splits.py",
    "spark/subscription.py",
    "spark/record_batches.py",
    "spark/varints.py",
    "publish/spark_log.py",
    "publish/compaction.py",
    "publish/layout.py",
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
# Doors to which only storage/ has the keys, and what runs in other processes: the client. `asyncio` is not
# one: shells live on the loop that they are given.
ONLY_STORAGE = {"lmdb", "fcntl", "threading", "mmap"}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "types", "misc"}
LINES_AT_MOST = 500


@functools.cache
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


@functools.cache
def imports(path: Path) -> frozenset[str]:
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
    return frozenset(found)


def names(paths: Iterable[Path]) -> list[str]:
    """Paths as they are told: relative to the checkout."""
    return [str(path.relative_to(ROOT.parent)) for path in paths]


def roots(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    return {name.split(".")[0] for name in imports(path)}


def test_the_product_knows_neither_tests_nor_rivals_nor_the_demo() -> None:
    """Nor has it a door for them: only the command line, whose commands are a table, imports by name."""
    assert names(path for path in MODULES if roots(path) & {"tests", "bench", "demo"}) == []
    by_name = [path for path in MODULES if "importlib" in imports(path)]
    assert names(by_name) == ["faircopy/cli/main.py"]


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def forbidden_imports(path: Path) -> set[str]:
    """The parts of ours that a module imports, and must not."""
    part = part_of(path)
    if part not in MAY_IMPORT:
        return set()
    parts = {name.split(".")[1] for name in imports(path) if name.startswith("faircopy.")}
    return parts - {part} - MAY_IMPORT[part] - FOR_ALL


def test_import_directions() -> None:
    found = {str(path.relative_to(ROOT)): forbidden_imports(path) for path in MODULES}
    assert {path: parts for path, parts in found.items() if parts} == {}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Not for typing's sake either."""
    found = in_circles({path: modules_imported(path) for path in MODULES})
    assert {str(path.relative_to(ROOT)) for path in found} == set()


def test_each_part_is_described() -> None:
    parts = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    described = re.findall(r"^\| `(\w+)/` ", ARCHITECTURE.read_text(), re.MULTILINE)
    assert parts == MAY_IMPORT.keys() == set(described)
    assert len(described) == len(parts)


def modules_of(place: Path) -> list[Path]:
    """The modules of a folder, or the module that this path is."""
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert found, place
    return found


def test_pure_modules_do_no_io() -> None:
    pure = [path for place in PURE for path in modules_of(ROOT / place)]
    assert {name: impure for name in pure if (impure := roots(name) & IMPURE)} == {}


def test_only_storage_opens_the_doors() -> None:
    others = [path for path in MODULES if part_of(path) not in ("storage", "cli", "client", "testing")]
    found = [path for path in others if roots(path) & ONLY_STORAGE]
    assert names(found) == []


OF_LINUX = re.compile(r"posix_fallocate\(|os\.fdatasync|RWF_|CLOCK_BOOTTIME|sendfile\(|MSG_MORE|\"/proc")


def test_what_linux_alone_has_is_in_one_place() -> None:
    """So that each call of it has a fallback beside it."""
    found = [path for path in MODULES if OF_LINUX.search(path.read_text())]
    assert names(found) == ["faircopy/storage/system.py"]


def test_names_and_sizes() -> None:
    assert names(path for path in MODULES if path.stem in FORBIDDEN_NAMES) == []
    assert names(path for path in MODULES if len(path.read_text().splitlines()) > LINES_AT_MOST) == []


def do_meet(one: Path, other: Path) -> bool:
    """Whether a reader meets both modules in one: in a third that imports them, or in one of them."""
    return any({one, other} <= modules_imported(path) | {path} for path in MODULES)


def test_a_class_has_its_name_alone_where_it_is_met() -> None:
    """One name, one thing. A class that only type checkers see is the same thing, twice in one file."""
    where: dict[str, set[Path]] = {}
    for path in MODULES:
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef):
                where.setdefault(each.name, set()).add(path)
    twice = {name: sorted(paths) for name, paths in where.items() if len(paths) > 1}
    assert {
        name: names(paths)
        for name, paths in twice.items()
        if any(do_meet(*pair) for pair in combinations(paths, 2))
    } == {}


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


def cited_in_vain(path: Path) -> Iterator[str]:
    """What a file cites of docs/ that is not there."""
    for page, section in CITED.findall(path.read_text()):
        cited = ROOT.parent / "docs" / page
        if not cited.exists() or (section and section not in headings(cited)):
            yield f"{path.relative_to(ROOT.parent)}: {page}, {section}"


def test_what_is_cited_is_there() -> None:
    assert [vain for path in CITING for vain in cited_in_vain(path)] == []


def test_nothing_cites_pages_of_elsewhere() -> None:
    found = [path for path in CITING if OF_ELSEWHERE.search(path.read_text())]
    assert names(path for path in found if path != Path(__file__)) == []


def test_lines_of_pages_are_short() -> None:
    """A table's row can't be wrapped."""
    lines = [(page.name, line) for page in PAGES for line in page.read_text().splitlines()]
    wrappable = [(name, line) for name, line in lines if not line.startswith("|") and "](http" not in line]
    assert [(name, line) for name, line in wrappable if len(line) > COLUMNS_MAX] == []


def test_the_example_of_an_api_is_one() -> None:
    example = (ROOT / "api" / "describe_client_quotas.py").read_text()
    assert f"```python\n{example}```" in (ROOT.parent / "docs" / "ADDING_AN_API.md").read_text()


RULE = re.compile(r"\b([PI]\d+)(?:-[PI]?(\d+))?\b")
PROMISES = re.findall(r"^(\d+)\. ", (ROOT.parent / "README.md").read_text(), re.MULTILINE)
INVARIANTS = re.findall(
    r"^\* (I\d+)\. ", (ROOT.parent / "docs" / "ARCHITECTURE.md").read_text(), re.MULTILINE
)
RULES = {*(f"P{number}" for number in PROMISES), *INVARIANTS}


def test_rules_are_numbered_without_gaps() -> None:
    assert [f"P{number}" for number in PROMISES] == [f"P{number}" for number in range(1, 10)]
    assert [f"I{number}" for number in range(1, 11)] == INVARIANTS


def test_rules_that_are_cited_are_there() -> None:
    unknown = {path: {rule for rule, _ in RULE.findall(path.read_text())} - RULES for path in CITING}
    assert {path: rules for path, rules in unknown.items() if rules} == {}


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


def test_every_public_name_has_a_docstring() -> None:
    assert {path: found for path in DOCUMENTED if (found := list(undocumented(path)))} == {}


# -- the tests -----------------------------------------------------------------------------------------------


def test_each_test_file_belongs_to_one_job() -> None:
    assert [file for file in files_with_tests() if job_of(file) is None] == []


def test_jobs_name_what_is_there_once() -> None:
    paths = [path for job in JOBS for path in job.paths]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if not (ROOT.parent / path).exists()] == []
