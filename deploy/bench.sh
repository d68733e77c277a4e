#!/usr/bin/env bash
# Measures what is claimed about speed, as ratios in one run on this machine. Arguments go to the
# benchmark: bash deploy/bench.sh --rounds 5
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bash "$root/deploy/setup.sh" --test
configure_and_build normlabd normlab-trainer normlab-shepherd normlab
say "the article: normlab against JAX"
exec "$root/.venv-test/bin/python" "$root/tests/bench/article_vs_jax.py" --bin "$build/bin" "$@"
