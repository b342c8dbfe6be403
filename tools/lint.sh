#!/usr/bin/env bash
# Runs every check that needs no test. `make lint` builds first what the settings page is checked against.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0

part() {
  local name=$1 output
  shift
  if output=$(tools/timed.sh "lint, $name" "$@" 2>&1); then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "$output"
    echo "FAILED  $name"
    failed=$((failed + 1))
  fi
}

part format bash -c 'tools/project_files.py .h .cpp .cu | xargs -r clang-format-19 --dry-run -Werror'
part tidy tools/tidy.py
part layers tools/check_layers.py
part headers tools/check_headers.sh
part words tools/check_words.py
part settings tools/settings_page.sh check

echo "lint: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
