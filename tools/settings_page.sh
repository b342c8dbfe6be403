#!/usr/bin/env bash
# docs/settings.md is made from the code: settings_page.sh write|check
set -euo pipefail
cd "$(dirname "$0")/.."

page() {
  # shellcheck disable=SC2016
  printf '# Settings\n\nMade from the code by `make docs`; do not edit.\n\n'
  build/iridium info --settings
}

case "${1:-}" in
  write)
    mkdir -p docs
    page > build/settings.md
    mv build/settings.md docs/settings.md
    ;;
  check)
    page > build/settings.md
    if ! diff -u docs/settings.md build/settings.md; then
      # shellcheck disable=SC2016
      echo 'docs/settings.md is not what the code says: run `make docs`'
      exit 1
    fi
    ;;
  *)
    echo "usage: settings_page.sh write|check" >&2
    exit 2
    ;;
esac
