#!/usr/bin/env bash
# Runs every test of the build folder, and lint. `make test` builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/counting.sh

run_ctest build

lint_counts=$(mktemp)
trap 'rm -f "$lint_counts"' EXIT
tools/lint.sh "$lint_counts" || true
if [[ -s $lint_counts ]]; then
  add_counts "$(< "$lint_counts")"
else
  echo "lint did not end"
  add_counts "0 1"
fi

finish
