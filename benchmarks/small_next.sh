#!/bin/sh
# Small dense models compiled for their sizes beside the usual ones, in one call of at most 60 s: every way checked beside
# float64 and compiled in a process of its own, all at once; then timed in turns. Everything goes to $OUT.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/small-kernels}
logs=${OUT:-.}
begin=$(date +%s)
for way in "usual" "4" "narrow" "4 three" "4 three shared" "narrow three"; do
  timeout 44 python3 benchmarks/small_next.py check "$way" > "$logs/check-$(echo "$way" | tr ' ' '-').log" 2>&1 &
done
wait
tail -q -n 1 "$logs"/check-*.log
echo "compiled after $(($(date +%s) - begin)) s"
timeout $((58 - $(date +%s) + begin)) python3 benchmarks/small_next.py times 2>&1 | tee "$logs/times.log"
echo "all in $(($(date +%s) - begin)) s"
