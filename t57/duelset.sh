#!/bin/bash
# duelset.sh WORKTREE NAME SEED imitation ppo SET...
cd $1; export PYTHONPATH=$PWD/src; E="$PWD/.venv/bin/python -m echelon_env"; cd /work/t57; W=$1; N=$2; S=$3; I=$4; P=$5; shift 5
B=""; C=""; for s in "$@"; do B="$B --set battle.$s"; C="$C --set $s"; done
$E imitate duel --seed $S --steps 1000000000 --max-cpu-minutes $I --eval-every 0 $B --out $N-i > $N-i.log 2>&1
$E train duel --init $N-i --opponent '{self = 5, expert = 3, veteran = 1, competent = 1}' --steps 1000000000 --max-cpu-minutes $P --seed $S --eval-every 0 --ppo.learning-rate linear:4e-4:4e-5 $B --out $N > $N.log 2>&1
$E card policy:$N --scenario duel --battles 200 $C --without laser autocannon smoke memory --out $N.card > $N.card.txt 2>&1
