"""Training runs.

`training` starts and resumes a run: `train` and `resume`. `run` is the run itself, the class `Run`: an algorithm, its
environment and the callbacks around them, saved and restored as one. `building` makes the environment and the algorithm
from a configuration. `folder` holds what a run leaves on disk, `loggers` and `curves` write its metrics, `evaluation`
measures its policy. `demo` and `exploitability` start trainings themselves.
"""
