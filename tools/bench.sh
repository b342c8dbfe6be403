#!/usr/bin/env bash
# Measures this machine beside its peers and regenerates docs/performance.md:
# bench.sh [--no-blocks] [--no-modes] [options of iridium bench]
#
# Figures go to bench/results/MACHINE, which says which GPUs, how many of them and the link, as in h200x8-nvlink:
#   bench.json         Iridium as it ships
#   bench_apart.json   the same with IRIDIUM_LINK=apart, where all ranks share the only GPU; not with --no-modes
#   bench_full.json    the barrier and all_reduce with IRIDIUM_BESIDE_COMPUTE=0, where ranks share GPUs; not with --no-modes
#   bench_blocks.json  on GPUs, several block counts with IRIDIUM_BESIDE_COMPUTE=0, without peers; not with --no-blocks
# Peers are what is here: torch's symmetric memory on a GPU, Open MPI on CPUs. Uses the binaries in IRIDIUM_BUILD
# (default build), and PYTHON (default python3).
set -euo pipefail
cd "$(dirname "$0")/.."
unset IRIDIUM_LINK IRIDIUM_BESIDE_COMPUTE IRIDIUM_LANES_AT_ONCE
build=${IRIDIUM_BUILD:-build}
python=${PYTHON:-python3}

usable_gpus() {
  "$build/iridium" info --format json | "$python" -c 'import json, sys
cuda = [b for b in json.load(sys.stdin)["backends"] if b["name"] == "cuda" and b["available"]]
print(sum(not device["objection"] for backend in cuda for device in backend["devices"]))'
}

# measure NAME arguments...: one run, kept as bench/results/MACHINE/NAME.json unless it was cut short. The first run
# names the machine, which has another name with IRIDIUM_LINK.
machine=
measure() {
  local name=$1 found complete
  shift
  : > "$figures"
  "$build/iridium" bench "$@" --out "$figures" || status=$?
  read -r found complete < <("$python" -c 'import json, sys
run = json.load(open(sys.argv[1]))
print(run["machine"]["name"], run["complete"])' "$figures") || exit "$status"
  machine=${machine:-$found}
  if [[ $complete != True ]]; then
    echo "bench: the run was cut short; bench/results/$machine/$name.json stays as it is" >&2
    exit "$status"
  fi
  mkdir -p "bench/results/$machine"
  cp "$figures" "bench/results/$machine/$name.json"
  echo "bench/results/$machine/$name.json"
}

blocks=true
modes=true
options_of_bench=()
for word in "$@"; do
  case "$word" in
    --no-blocks) blocks=false ;;
    --no-modes) modes=false ;;
    *) options_of_bench+=("$word") ;;
  esac
done
set -- ${options_of_bench[@]+"${options_of_bench[@]}"}

mkdir -p "$build/bench"
collectives=(all_reduce all_gather reduce_scatter all_to_all broadcast)
gpus=$(usable_gpus)
options=(-n "2,4,8")
peers=()
if [[ $gpus -gt 0 ]]; then
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
all=(device_barrier signal_all put get put_signal "${collectives[@]}")
measure bench "${all[@]}" "${options[@]}" "${peers[@]}" "$@"
if [[ $gpus -eq 1 && $modes == true ]]; then
  IRIDIUM_LINK=apart measure bench_apart "${all[@]}" "${options[@]}" "${peers[@]}" "$@"
fi
if [[ $gpus -gt 0 && $gpus -lt 8 && $modes == true ]]; then
  IRIDIUM_BESIDE_COMPUTE=0 measure bench_full device_barrier all_reduce "${options[@]}" "${peers[@]}" "$@"
fi
if [[ $gpus -gt 0 && $blocks == true ]]; then
  IRIDIUM_BESIDE_COMPUTE=0 measure bench_blocks "${collectives[@]}" "${options[@]}" "$@" --bytes 16M --blocks 4,8,16,32,64 \
    --algorithm automatic --no-baseline
fi
"$python" tools/performance_page.py
exit "$status"
