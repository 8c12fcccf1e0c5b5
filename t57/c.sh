#!/bin/bash
# c.sh WORKTREE PLAYER BATTLES [args]
cd $1; shift; P=$1; N=$2; shift 2
PYTHONPATH=$PWD/src .venv/bin/python -m echelon_env card "$P" --battles $N "$@"
