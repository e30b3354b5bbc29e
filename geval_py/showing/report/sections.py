"""The sections of a report, in the order in which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geval_py.showing.report.panels.help import help_panel
from geval_py.showing.report.panels.honesty import honesty_panels, luck_panel
from geval_py.showing.report.panels.losses import costs_panel, spread_panel
from geval_py.showing.report.panels.overview import (
    expected_panel,
    features_panel,
    input_panels,
    scores_panel,
    standing_panel,
)
from geval_py.showing.report.panels.panel import Panel, Section
from geval_py.showing.report.panels.parts import column_panels, culprits_panel, frequency_panel, length_panel
from geval_py.showing.report.panels.quality import comparison_panel, quality_panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from geval_py.explaining.overview import Overview
    from geval_py.explaining.report import Report
    from geval_py.showing.report.palette import Palette


def sections_of(report: Report, palette: Palette) -> list[Section]:
    """Give the sections of a report, each with a panel at least."""
    found = (
        _section("How good, how sure", _quality(report, palette)),
        _section("Where the loss comes from", [spread_panel(report, palette), costs_panel(report, palette)]),
        _section("Which lines are hard", _parts(report, palette)),
        _section("Honest probabilities, and what would help", _help(report, palette)),
    )
    return [section for section in found if section.panels]


def overview_sections(overview: Overview, palette: Palette) -> list[Section]:
    """Give the sections of a report on any metric, each with a panel at least."""
    comparison = comparison_panel(overview.comparison, palette)
    good = [standing_panel(overview, palette), comparison, scores_panel(overview, palette)]
    hard = [expected_panel(overview, palette), features_panel(overview, palette), *input_panels(overview, palette)]
    found = (
        _section("How good, how sure", good),
        _section("Which lines are hard", hard),
    )
    return [section for section in found if section.panels]


def _section(title: str, panels: Iterable[Panel | None]) -> Section:
    return Section(title=title, panels=tuple(panel for panel in panels if panel is not None))


def _quality(report: Report, palette: Palette) -> list[Panel | None]:
    comparison = comparison_panel(report.comparison, palette)
    return [quality_panel(report, palette), comparison or _luck(report, palette)]


def _luck(report: Report, palette: Palette) -> Panel | None:
    return None if report.luck is None else luck_panel(report, report.luck, palette)


def _help(report: Report, palette: Palette) -> Iterator[Panel | None]:
    if report.calibration is not None:
        yield from honesty_panels(report.calibration, palette)
    if report.tuning is not None:
        yield help_panel(report, report.tuning, palette)
    if report.comparison is not None:  # else it stands further up, so that columns are about as long
        yield _luck(report, palette)


def _parts(report: Report, palette: Palette) -> list[Panel]:
    frequency = [frequency_panel(report, palette)] if report.by_frequency else []
    columns = column_panels(report, palette)
    return [length_panel(report, palette), *frequency, culprits_panel(report, palette), *columns]
