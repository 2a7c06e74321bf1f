# every check and timing of the fleet on a GPU, the compilations side by side first
export PYTHONPATH=src PYTHONUNBUFFERED=1
L=$OUT
python3 -c "import pytest" 2>&1 | tail -1; nvidia-smi --query-gpu=name,driver_version,clocks.sm,memory.used --format=csv,noheader
t0=$(date +%s)
( unset OUT; python3 benchmarks/kernels.py --skip errors profile steps > /tmp/bits.log 2>&1 ) &
for p in bf16 tf32 fp32; do ( unset OUT; timeout 300 python3 benchmarks/kernels.py --skip bits profile steps --precisions $p > /tmp/err-$p.log 2>&1 ) & done
warm() { ( unset OUT; timeout 300 python3 benchmarks/fleet.py --ways fleet --models 16 --rounds 1 "$@" > /tmp/warm-$(echo "$@" | tr -d ' -').log 2>&1 ) & }
warm --channels 3; warm --precision tf32; warm --precision fp32; warm --network conv_2x2; warm --objective factor_vae
wait
echo "side by side: $(( $(date +%s) - t0 )) s"
cat /tmp/bits.log /tmp/err-*.log | tee $L/checks.log | tail -60
f() { timeout 120 python3 benchmarks/fleet.py --rounds 3 "$@" 2>&1 | grep -v '^{' | sed "s/^/[$*] /"; }
{
f
f --ways fleet --channels 3
f --ways fleet --network conv_2x2
f --ways fleet --objective factor_vae --models 128
f --ways fleet --precision tf32 --models 128
f --ways fleet --precision fp32 --models 64
} | tee $L/times.log
( unset OUT; python3 benchmarks/kernels.py --skip errors bits steps --models 256 > $L/profile1.log 2>&1; python3 benchmarks/kernels.py --skip errors bits steps --models 256 --channels 3 > $L/profile3.log 2>&1;  python3 benchmarks/kernels.py --skip errors bits steps --models 128 --objective factor_vae > $L/profilef.log 2>&1 )
head -24 $L/profile1.log
echo "all: $(( $(date +%s) - t0 )) s"
