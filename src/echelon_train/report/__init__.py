"""Reports of runs and leagues: each is one HTML file, which loads nothing."""

from echelon_train.report.comparison import write_comparison
from echelon_train.report.league_report import write_league_report
from echelon_train.report.run_report import write_run_report

__all__ = ["write_comparison", "write_league_report", "write_run_report"]
