"""Conformance checks for any parallel or vector environment, for use in test suites."""

from echelon_env.testing.conformance import CHECKS, ConformanceError, ConformanceWarning
from echelon_env.testing.parallel import check_parallel_env
from echelon_env.testing.sampling import ActionSampler, sample_action
from echelon_env.testing.vector import check_vector_env

__all__ = [
    "CHECKS",
    "ActionSampler",
    "ConformanceError",
    "ConformanceWarning",
    "check_parallel_env",
    "check_vector_env",
    "sample_action",
]
