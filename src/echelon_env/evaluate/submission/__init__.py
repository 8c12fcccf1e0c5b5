"""Submissions: the results of a method on a suite as one JSON file, which others check by replaying its battles.

A submission has the result of every battle, from which all aggregates are computed again, and proofs: the recorded
actions of all battles that were not lost. A verification replays all of them, or those that a `Draw` chooses.
"""

from echelon_env.evaluate.submission.document import (
    Draw,
    Method,
    Submission,
    SubmissionError,
    drawn_battles,
)
from echelon_env.evaluate.submission.files import read_submission, write_submission
from echelon_env.evaluate.submission.proofs import make_submission, verify_submission

__all__ = [
    "Draw",
    "Method",
    "Submission",
    "SubmissionError",
    "drawn_battles",
    "make_submission",
    "read_submission",
    "verify_submission",
    "write_submission",
]
