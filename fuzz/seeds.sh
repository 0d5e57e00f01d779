#!/bin/sh
# Writes the scripts of the corpus, one file each, to fuzz/corpus/<target>, where cargo-fuzz looks.
set -eu
cd "$(dirname "$0")"
for target in parse compile_and_run; do
  mkdir -p "corpus/$target"
  find ../tests/corpus -name '*.txt' | sort | xargs awk -v folder="corpus/$target" '
    function end() { if (file != "") close(file); file = "" }
    /^=== / { end(); count++; file = sprintf("%s/seed-%04d", folder, count); printf "" > file; head = 1; next }
    /^--- (logs|result|error|status)$/ || FNR == 1 { end(); next }
    head && /^@/ { next }
    file != "" { head = 0; print >> file }'
done
