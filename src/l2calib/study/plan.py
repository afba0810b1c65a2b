"""What a study computes: its cells, and for each a task that any worker can do by itself.

Sizes are those of the paper (Section 4.2) unless others are asked for; a cell is a block of docs/decisions/0008.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from l2calib.errors import SpecError, suggest, whole_number
from l2calib.methods.catalogue import PAPER_METHODS, method_named
from l2calib.study.error_laws import ERROR_LAWS, error_law

if TYPE_CHECKING:
    from l2calib.study.configurations import Configuration

Levels = Literal["endpoints", "midpoints"]
LEVELS = ("endpoints", "midpoints")
PAPER_SIZES = tuple(range(20, 201, 20))
DEFAULT_BLOCK = 1000
_MAXIMUM_SEED = 2**63 - 1


@dataclass(frozen=True, order=True)
class Cell:
    """A block of replications of one configuration, size, error law and method; blocks count from zero."""

    configuration: str
    n: int
    errors: str
    method: str
    block: int

    @property
    def group(self) -> tuple[str, int]:
        """What shares tables, programs and the choice of rho: configuration and size."""
        return self.configuration, self.n

    def __str__(self) -> str:
        return (
            f"configuration {self.configuration}, n = {self.n}, {self.errors} errors, {self.method}, block {self.block}"
        )


@dataclass(frozen=True, eq=False)
class Task:
    """All that a worker needs to compute a cell: it travels to other machines.

    `design` is (n, k) in the unit cube, `rows` the number of replications in a block; `source` is the text of the file
    that defines the configuration, empty for the paper's.
    """

    cell: Cell
    design: np.ndarray
    rows: int
    levels: str
    seed: int
    source: str = field(default="", repr=False)

    def streams(self) -> tuple[np.random.Generator, np.random.Generator]:
        """The randomness of the errors, and that of the seeds of the calibrations.

        Both depend on the study's seed, the configuration, the size, the law and the block alone: every method
        sees the same datasets with the same seeds.
        """
        cell = self.cell
        key = zlib.crc32(cell.configuration.encode()), cell.n, zlib.crc32(cell.errors.encode()), cell.block
        errors, seeds = np.random.SeedSequence(self.seed, spawn_key=key).spawn(2)
        return np.random.Generator(np.random.PCG64(errors)), np.random.Generator(np.random.PCG64(seeds))


@dataclass(frozen=True, eq=False)
class Plan:
    """Configurations x sizes x error laws x methods, each replicated.

    Blocks are computed whole, so a study may be continued with more replications; `levels`, `seed` and `block`, the
    number of replications in one, are what it cannot be continued without.
    """

    configurations: Mapping[str, Configuration]
    sizes: Sequence[int] = PAPER_SIZES
    errors: Sequence[str] = tuple(ERROR_LAWS)
    methods: Sequence[str] = PAPER_METHODS
    replications: int = 20_000
    levels: str = "endpoints"
    seed: int = 0
    block: int = DEFAULT_BLOCK
    _designs: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "sizes": _several([whole_number(n, "a size", least=1) for n in self.sizes], "sizes", "20,100"),
            "errors": _several(self.errors, "error laws", "normal"),
            "methods": _several(self.methods, "methods", "gb-l2,koh"),
            "replications": whole_number(self.replications, "the number of replications", least=1),
            "seed": whole_number(self.seed, "the seed", least=0, most=_MAXIMUM_SEED),
            "block": whole_number(self.block, "the number of replications in a block", least=1),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for law in self.errors:
            error_law(law)
        for method in self.methods:
            method_named(str(method))
        if self.levels not in LEVELS:
            near = suggest(str(self.levels), LEVELS)
            raise SpecError(f"the levels of a design are {' or '.join(LEVELS)}: received {self.levels!r:.60}{near}.")
        _several(self.configurations, "configurations", "1,2")
        for name in self.configurations:
            self._check(name)

    def _check(self, name: str) -> None:
        from l2calib.study.configurations import paper_configurations

        configuration = self.configurations[name]
        if not configuration.source and configuration is not paper_configurations().get(name):
            raise SpecError(
                f"a worker could not find configuration {name}, which is neither the paper's nor from a file; "
                "write it into a Python file and read it with load_configurations."
            )
        least = len(configuration.parameters) + 2
        if min(self.sizes) < least:
            raise SpecError(
                f"n = {min(self.sizes)} is too small for configuration {name}, "
                f"whose parameters are {', '.join(configuration.parameters)}: give at least {least}."
            )

    @property
    def blocks(self) -> int:
        """How many blocks hold the replications."""
        return -(-self.replications // self.block)

    def cells(self) -> list[Cell]:
        """Group by group, so that a worker compiles and prepares as seldom as possible."""
        return [
            Cell(configuration, n, errors, method, block)
            for configuration in self.configurations
            for n in self.sizes
            for method in self.methods
            for errors in self.errors
            for block in range(self.blocks)
        ]

    def design(self, inputs: int, n: int) -> np.ndarray:
        """The design (n, k) in the unit cube that all configurations with so many inputs share."""
        if (inputs, n) not in self._designs:
            from l2calib.designs import maxpro_design

            levels = cast("Levels", self.levels)
            self._designs[inputs, n] = np.asarray(maxpro_design(n, inputs, levels=levels, seed=self.seed))
        return self._designs[inputs, n]

    def task(self, cell: Cell, design: np.ndarray | None = None) -> Task:
        """The task of a cell, on the study's own design unless one is given."""
        configuration = self.configurations[cell.configuration]
        points = self.design(len(configuration.box.names), cell.n) if design is None else design
        return Task(cell, points, self.block, self.levels, self.seed, configuration.source)


def _several(given: Any, what: str, example: str) -> tuple[Any, ...]:
    """Without repetitions; SpecError if there are none."""
    if isinstance(given, str) or not isinstance(given, Iterable) or not (several := tuple(dict.fromkeys(given))):
        raise SpecError(f"no {what} were given: received {given!r:.60}; give for example {example}.")
    return several
