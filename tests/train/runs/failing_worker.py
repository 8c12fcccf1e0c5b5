"""``python -m train.runs.failing_worker``: a worker that fails when it begins to learn."""

import sys

from echelon_train.runs import worker
from echelon_train.runs.run import Run


def fail(self, logger):
    print("a line that is no message")
    raise ValueError("broken in the worker")


if __name__ == "__main__":
    Run.learn = fail
    sys.exit(worker.main())
