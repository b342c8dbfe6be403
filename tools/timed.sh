#!/usr/bin/env bash
# Runs a command as one part of a longer run: timed.sh part command...
#
# The part and its seconds become a line of the file that IRIDIUM_PARTS names, if it names one: `.ci/run` ends with
# a table of them.
set -uo pipefail

part=$1
shift
start=$SECONDS
"$@"
status=$?
if [[ -n ${IRIDIUM_PARTS:-} ]]; then
  printf '%s\t%s\n' "$part" $((SECONDS - start)) >> "$IRIDIUM_PARTS"
fi
exit "$status"
