#!/bin/sh
# The fleet's table with the sources in a folder ($1/src, $1/benchmarks) and with these, in turn, on a GPU.
logs=${OUT:-.}
timeout 280 env PYTHONPATH=src python3 -m pytest -c /dev/null --rootdir=. --noconftest -p no:cacheprovider -q tests/training/test_fleet_gpu.py > "$logs/tests.log" 2>&1
tail -n 15 "$logs/tests.log"
cases='standard factor fp32'
for turn in 1 2; do
  for place in "$1" .; do
    echo "turn $turn, sources in $place"
    (unset OUT; PYTHONPATH=$place/src timeout 200 python3 "$place/benchmarks/fleet.py" --cases $cases 2>&1 | tee "$logs/turn$turn-$(basename "$(realpath "$place")").log")
  done
done
