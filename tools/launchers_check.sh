#!/usr/bin/env bash
# Runs the first example under launchers of other projects that are installed here; those that are
# not are left out. Not part of the tests: none of them is installed by this project.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${IRIDIUM_BUILD:-build}/examples/01_ranks_and_arrays

# expect_ranks count command...: every rank must say that its array is right.
expect_ranks() {
  local count=$1 right
  shift
  echo "+ $*"
  right=$("$@" | tee /dev/stderr | grep -c "rank [0-9]* of $count, .*: right")
  [[ $right -eq $count ]]
}

if command -v torchrun > /dev/null; then
  expect_ranks 3 torchrun --standalone --nproc-per-node 3 --no-python "$program"
fi
if command -v mpirun > /dev/null; then
  expect_ranks 3 mpirun --allow-run-as-root --oversubscribe -n 3 "$program"
fi
if command -v srun > /dev/null; then
  expect_ranks 3 srun --ntasks 3 "$program"
fi
