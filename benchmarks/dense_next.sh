#!/bin/sh
# Dense kernels that wait for a card, in one call of at most 110 s: checked beside float64 and compiled side by side, then
# timed in turns with those that they would replace; tables last. Everything goes to $OUT.
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/dense-kernels}
logs=${OUT:-.}
begin=$(date +%s)
number=0
go() {
  number=$((number + 1))
  timeout 58 python3 benchmarks/dense_next.py "$@" > "$logs/check-$number.log" 2>&1 || echo "FAILED $*" >> "$logs/check-$number.log" &
}
for way in usual 4 8 narrow tight "4 three" "4 three shared" "8 three shared" "narrow three"; do
  go small --way "$way"
done
for product in tf32x3 three six; do
  go fleet --way $product
  for tiles in 64,64,4,3,64 64,64,4,3,32 64,64,4,4,32 64,128,4,3,32; do
    go wide --way "$product $tiles"
  done
done
wait
echo "checked after $(($(date +%s) - begin)) s"
timeout 24 python3 benchmarks/dense_next.py times-small > "$logs/times-small.log" 2>&1
echo "small models timed after $(($(date +%s) - begin)) s"
timeout $((108 - $(date +%s) + begin)) python3 benchmarks/dense_next.py times-wide > "$logs/times-wide.log" 2>&1
tail -q -n 1 "$logs"/check-*.log
tail -n 20 "$logs/times-small.log"
tail -n 40 "$logs/times-wide.log"
echo "all in $(($(date +%s) - begin)) s"
