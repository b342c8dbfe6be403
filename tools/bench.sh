#!/usr/bin/env bash
# Measures this machine beside its peers and regenerates docs/performance.md: bench.sh [--no-blocks] [options of iridium bench]
#
# Figures go to bench/results/MACHINE/bench.json and, on a GPU and without --no-blocks, those of several block counts to
# bench_blocks.json beside it; MACHINE says which GPUs, how many of them and the link, as in h200x8-nvlink. Peers are what
# is here: torch's symmetric memory on a GPU, Open MPI on CPUs. Uses the binaries in IRIDIUM_BUILD (default build), and
# PYTHON (default python3).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${IRIDIUM_BUILD:-build}
python=${PYTHON:-python3}

has_gpu() {
  "$build/iridium" info --format json | "$python" -c 'import json, sys
sys.exit(not any(b["name"] == "cuda" and b["available"] for b in json.load(sys.stdin)["backends"]))'
}

# measure NAME arguments...: one run, kept as bench/results/MACHINE/NAME.json unless it was cut short.
measure() {
  local name=$1 machine complete
  shift
  : > "$figures"
  "$build/iridium" bench "$@" --out "$figures" || status=$?
  read -r machine complete < <("$python" -c 'import json, sys
run = json.load(open(sys.argv[1]))
print(run["machine"]["name"], run["complete"])' "$figures") || exit "$status"
  if [[ $complete != True ]]; then
    echo "bench: the run was cut short; bench/results/$machine/$name.json stays as it is" >&2
    exit "$status"
  fi
  mkdir -p "bench/results/$machine"
  cp "$figures" "bench/results/$machine/$name.json"
  echo "bench/results/$machine/$name.json"
}

blocks=true
if [[ ${1:-} == --no-blocks ]]; then
  blocks=false
  shift
fi

mkdir -p "$build/bench"
collectives=(all_reduce all_gather reduce_scatter all_to_all broadcast)
backend=host
options=(-n 2,4,8)
peers=()
if has_gpu; then
  backend=cuda
  options+=(--backend cuda --bytes 4K:64M)
  if "$python" -c 'import torch' 2> /dev/null; then
    peers+=(--peer bench/peers/torch)
  else
    echo "bench: torch is not installed, so it is not measured" >&2
  fi
else
  # MPI has no numbers of 16 bits.
  options+=(--backend host --bytes 4K:16M --dtype fp32)
  if command -v mpic++ mpirun > /dev/null; then
    mpic++ -std=c++20 -O2 -Wall -Wextra -o "$build/bench/mpi_peer" bench/peers/mpi_peer.cpp bench/peers/mpi_operations.cpp
    peers+=(--peer bench/peers/openmpi)
  else
    echo "bench: Open MPI is not installed, so it is not measured" >&2
  fi
fi

figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
status=0
measure bench device_barrier signal_all put get put_signal "${collectives[@]}" "${options[@]}" "${peers[@]}" "$@"
if [[ $backend == cuda && $blocks == true ]]; then
  measure bench_blocks "${collectives[@]}" "${options[@]}" "$@" --bytes 16M --blocks 4,8,16,32,64 \
    --algorithm automatic --no-baseline
fi
"$python" tools/performance_page.py
exit "$status"
