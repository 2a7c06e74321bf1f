#!/bin/sh
# From the command to the first step on a GPU, and a whole training beside its loop, in one call of about 90 s: `unweave
# train` of 128 models on a machine that never did it, and beside it PyTorch's import alone, as the machine has it and with
# bytecode, and what the disk says to 128 folders; then a second use and a whole training, alone. What there is no time for
# is left out: the second use of 200 steps after 50 s, a profile of a start (PROFILE=0 leaves it out) after 85.
# Python's bytecode is kept in /tmp/start, since some machines keep none; there is none before the first use.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 UNWEAVE_DATA=/tmp/start/data
logs=${OUT:-.}
kept="env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=/tmp/start/bytecode"
now() { date +%s.%N; }
since() { echo "$1 $(now)" | awk '{ printf "%.2f", $2 - $1 }'; }
whole() { echo "$1 $(now)" | awk '{ printf "%d", $2 - $1 }'; }
imports() {
  for turn in 1 2 3; do
    "$@" python3 -c "import time; a = time.perf_counter(); import torch; print(f'{time.perf_counter() - a:.2f}', end=' ')"
  done
}
train() {
  at=$(now)
  $kept timeout 90 python3 $3 benchmarks/start.py dsprites --seeds 0:128 --steps "$2" --plan.device "${DEVICE:-cuda}" $MORE --quiet \
    --folder "/tmp/start/runs-$1" > "$logs/$1.log" 2>&1
  echo "$1: $(grep "^first step" "$logs/$1.log" || tail -n 1 "$logs/$1.log") with the exit $(since $at)" > "/tmp/start/b-$1.txt"
}
rm -rf /tmp/start
mkdir -p /tmp/start
begin=$(now)
train first-use 200 &
has="import sys, os, importlib.util as u; s = u.find_spec('torch').origin"
has="$has; print('keeps bytecode:', not sys.dont_write_bytecode, ', has it of torch:', os.path.exists(u.cache_from_source(s)))"
python3 -c "$has" > /tmp/start/a-imports.txt
echo "import torch, as it is: $(imports env)" >> /tmp/start/a-imports.txt
echo "import torch, bytecode kept: $(imports $kept)" >> /tmp/start/a-imports.txt
$kept python3 benchmarks/start.py --folders /tmp/start/folders >> /tmp/start/a-imports.txt 2>&1
wait
test "$(whole $begin)" -gt 50 || train second-use 200
echo "started after $(whole $begin) s"
train whole "${STEPS:-8000}"
echo "trained after $(whole $begin) s"
test "${PROFILE:-1}" = 0 || test "$(whole $begin)" -gt 85 || train profile 20 "-m cProfile -s tottime"
grep -hs "Error\|without" "$logs/first-use.log" "$logs/second-use.log" "$logs/whole.log"
echo "the whole training:" && grep " s until" "$logs/whole.log"
cat /tmp/start/*.txt | tee "$logs/table.txt"
echo "all in $(whole $begin) s"
