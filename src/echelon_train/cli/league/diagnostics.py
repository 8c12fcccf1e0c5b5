"""Warnings of the commands of `echelon league` about ratings that the games contradict."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from echelon_train.cli.league.output import wrap
from echelon_train.league.analysis import Analysis, warnings


def warnings_document(analysis: Analysis) -> dict[str, Any]:
    """The warnings for JSON."""
    return {
        "mispredictions": [
            {**asdict(pair), "explained_by_strengths": pair not in analysis.unexplained}
            for pair in analysis.mispredictions
        ],
        "cycle": {**asdict(analysis.cycle), "significant": analysis.cycle.significant},
    }


def format_warnings(analysis: Analysis) -> list[str]:
    """The warnings as lines; empty if there are none."""
    return [line for sentence in warnings(analysis, "'echelon league matrix --json'") for line in wrap(sentence)]
