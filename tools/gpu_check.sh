#!/usr/bin/env bash
# Runs every test that has a GPU form on this machine's GPUs; gpu_check.sh --help tells the options.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

all_modes=(shared apart as_apart as_nvlink no_atomics)
all_parts=(cuda tiles kernels ranks collectives matmul probe room mps examples commands code sanitizer)

usage() {
  cat << 'END'
usage: tools/gpu_check.sh [--full] [--mode MODE[,MODE...]] [--part PART[,PART...]]
       make gpu-check [MODE=...] [PART=...]

Modes; without one: shared, or where several GPUs are visible apart, then shared:
  shared      all ranks share one GPU, under MPS where they are processes
  apart       a GPU for each rank, no MPS; tests with more ranks than GPUs are skipped
  as_apart    one GPU, as if each rank had its own (IRIDIUM_LINK=apart)
  as_nvlink   one GPU, as if NVLink lay between the ranks (IRIDIUM_LINK=nvlink)
  no_atomics  one GPU, as if PCIe without atomics lay between the ranks (IRIDIUM_LINK=pcie)

Parts; without one: all of them:
  cuda         streams, captures, memory and other programs' CUDA on one GPU
  tiles        tiles in kernels
  kernels      kernels of several ranks: lanes, atomics, remote memory, faults
  ranks        contexts, heaps and teams, in device memory and in host memory
  collectives  every algorithm, checked bit by bit
  matmul       matrix products, also fused with collectives: every algorithm that the GPU has
  probe        capture and replay of every operation
  room         kernels that compute find room beside calls that wait: one team and two
  mps          the MPS daemon that iridium run starts (mode shared only)
  examples     the programs of the tutorials
  commands     iridium info --peers, probe and tune; ranks started by hand: with process numbers of their own, and late
  code         the instructions of the compiled kernels; needs cuobjdump (once, whatever the modes)
  sanitizer    compute-sanitizer's memcheck (once, whatever the modes)

--full has every case in both placements. Builds from the sources that are here, without installing anything; with
IRIDIUM_BUILD set, uses the binaries of that build folder instead. Logs go to GPU_CHECK_LOGS (default: gpu-check in
the build folder), a folder per mode. IRIDIUM_TIMEOUT is 30 s unless it is set. Each program of a part may take
GPU_CHECK_LIMIT seconds (default: 400): raise it for slow machines. GPUs that Iridium cannot use are left out.
END
}

refuse() {
  echo "gpu-check: $1" >&2
  usage >&2
  exit 2
}

# choose kind list known...: splits a list of words at commas into `chosen`; none: all that are known.
choose() {
  local kind=$1 list=$2 word
  shift 2
  IFS=, read -r -a chosen <<< "$list"
  for word in ${chosen[@]+"${chosen[@]}"}; do
    [[ " $* " == *" $word "* ]] || refuse "there is no $kind '$word'; there are $*"
  done
}

extent=sample
mode_list=
part_list=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --full) extent=full ;;
    --mode | --part)
      [[ $# -ge 2 ]] || refuse "$1 needs a value"
      if [[ $1 == --mode ]]; then mode_list=$2; else part_list=$2; fi
      shift
      ;;
    --help)
      usage
      exit 0
      ;;
    *) refuse "what is '$1'?" ;;
  esac
  shift
done
choose mode "$mode_list" "${all_modes[@]}"
modes=(${chosen[@]+"${chosen[@]}"})
choose part "$part_list" "${all_parts[@]}"
parts=(${chosen[@]+"${chosen[@]}"})
[[ ${#parts[@]} -gt 0 ]] || parts=("${all_parts[@]}")
limit=${GPU_CHECK_LIMIT:-400}
[[ $limit =~ ^[1-9][0-9]*$ ]] || refuse "GPU_CHECK_LIMIT is '$limit': expected a whole number of seconds"

build=${IRIDIUM_BUILD:-build}
# The tests only where there is a GPU for them.
if [[ -z ${IRIDIUM_BUILD:-} ]]; then
  make SETUP=true PRESET=cuda build
elif [[ ! -x $build/iridium ]]; then
  echo "gpu-check: IRIDIUM_BUILD is '$build', which has no iridium" >&2
  exit 2
fi
top_logs=${GPU_CHECK_LOGS:-$build/gpu-check}
mkdir -p "$top_logs"

# How many are visible, and the numbers of those that can be used.
found=$("$build/iridium" info --format json | python3 -c 'import json, sys
for backend in json.load(sys.stdin)["backends"]:
    if backend["name"] == "cuda" and backend["available"]:
        objections = [device["objection"] for device in backend["devices"]]
        print(len(objections), *(number for number, text in enumerate(objections) if not text))')
read -r visible numbers <<< "$found"
read -r -a usable <<< "$numbers"
gpus=${#usable[@]}
if [[ $gpus -eq 0 ]]; then
  "$build/iridium" info
  echo "gpu-check: no usable GPU here"
  add_counts "0 1"
  finish
fi
[[ -n ${IRIDIUM_BUILD:-} ]] || make SETUP=true PRESET=cuda build-all
"$build/iridium" info | tee "$top_logs/info.txt"
if ((gpus < visible)); then
  # Not every test passes over those that cannot be used, so no test sees them.
  IFS=, read -r -a names <<< "${CUDA_VISIBLE_DEVICES:-}"
  CUDA_VISIBLE_DEVICES=
  for number in "${usable[@]}"; do CUDA_VISIBLE_DEVICES+=${CUDA_VISIBLE_DEVICES:+,}${names[number]:-$number}; done
  export CUDA_VISIBLE_DEVICES
  echo "gpu-check: CUDA_VISIBLE_DEVICES is $CUDA_VISIBLE_DEVICES: $((visible - gpus)) of $visible GPUs cannot be used"
fi
if [[ ${#modes[@]} -eq 0 ]]; then
  modes=(shared)
  [[ $gpus -eq 1 ]] || modes=(apart shared)
fi
if [[ " ${modes[*]} " == *" apart "* && $gpus -eq 1 ]]; then
  refuse "mode apart needs several GPUs, and one is visible"
fi

# As in all tests: hangs end early.
export IRIDIUM_TIMEOUT=${IRIDIUM_TIMEOUT:-30} IRIDIUM_CONSTRUCTION_TIMEOUT=${IRIDIUM_CONSTRUCTION_TIMEOUT:-30}
# Not those of whoever calls this: each mode has its own.
unset IRIDIUM_LINK IRIDIUM_DEVICE IRIDIUM_TEST_MOST_RANKS IRIDIUM_BESIDE_COMPUTE IRIDIUM_LANES_AT_ONCE

source tools/gpu_check_parts.sh

times=()
code_is_checked=false
for mode in "${modes[@]}"; do
  logs=$top_logs/$mode
  mkdir -p "$logs"
  for part in "${parts[@]}"; do
    begin=$SECONDS
    echo "== $mode: $part"
    echo "0 1 0" > "$logs/counts"
    # In a shell of its own, so that a mode's variables and daemon end with it. Its counts come back in a file; one
    # that ends early leaves a failure there.
    set +e
    (
      set -e
      trap stop_mps EXIT
      passed=0 failed=0 skipped=0
      "enter_$mode"
      "part_$part"
      echo "$passed $failed $skipped" > "$logs/counts"
    )
    set -e
    add_counts "$(cat "$logs/counts")"
    times+=("$mode $part $((SECONDS - begin))")
  done
  code_is_checked=true
done

echo
printf '%s\n' "${times[@]}" | awk '{ printf "%-12s %-12s %6d s\n", $1, $2, $3 }' | tee "$top_logs/times.txt"
finish
