#!/usr/bin/env bash
# Sets up, builds, and runs every test; --full adds those that take long (see CONTRIBUTING.md).
# Further arguments go to ctest: bash deploy/test.sh -R storage
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

exclude=(-LE full)
if [ "${1:-}" = --full ]; then
  exclude=()
  shift
fi
bash "$root/deploy/setup.sh" --test
configure_and_build
say "testing"
cd "$build"
exec ctest --output-on-failure --no-tests=error -j "$(nproc)" ${exclude[@]+"${exclude[@]}"} "$@"
