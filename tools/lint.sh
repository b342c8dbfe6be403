#!/usr/bin/env bash
# Runs every check that needs no test: lint.sh [file that gets "passed failed"]
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0

part() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "$output"
    echo "FAILED  $name"
    failed=$((failed + 1))
  fi
}

check_format() {
  tools/project_files.py .h .cpp .cu | xargs -r clang-format-19 --dry-run -Werror
}

part format check_format
part tidy tools/tidy.py
part layers tools/check_layers.py
part headers tools/check_headers.sh
part words tools/check_words.py
if [[ -x build/iridium ]]; then
  part settings tools/settings_page.sh check
fi

echo "lint: $passed passed, $failed failed"
if [[ $# -gt 0 ]]; then
  echo "$passed $failed" > "$1"
fi
[[ $failed -eq 0 ]]
