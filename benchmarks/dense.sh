#!/bin/sh
# Dense kernels and streams on a GPU in one call of about 200 s: tests and compilations side by side, then timings alone.
export PYTHONPATH=src PYTHONUNBUFFERED=1 TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-/tmp/kernels}
logs=${OUT:-.}
test="timeout 100 python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q tests/training/test_fleet_gpu.py"
for kind in linear tanh 128 wide; do
  $test -k "dense and $kind" > "$logs/tests-$kind.log" 2>&1 &
done
$test -k "not of_dense_models and not dense_kernels" > "$logs/tests-fleet.log" 2>&1 &
for case in linear tanh-epochs table wide conv-16; do
  timeout 100 python3 benchmarks/dense.py --cases $case --ways kernels --seconds 0 > "$logs/warm-$case.log" 2>&1 &
done
wait
grep -h "passed\|failed\|Error\|FAILED" "$logs"/tests-*.log "$logs"/warm-*.log
for part in "--cases linear tanh-epochs wide conv-16 conv-1" "--cases linear tanh-epochs --agree 64" \
  "--cases wide conv-16 conv-1 --ways kernels --profile" "--cases table linear-epochs wide-adam full digits conv-256"; do
  timeout 60 python3 benchmarks/dense.py $part 2>&1 | tee -a "$logs/dense.log"
done
