#!/usr/bin/env bash
# Sets up, builds, and runs every test; then builds the server with AddressSanitizer and
# UndefinedBehaviorSanitizer, and with ThreadSanitizer, and runs its unit tests again.
#   --no-sanitize  leaves the sanitizers out
#   --full         also those tests that take long (see CONTRIBUTING.md)
# Further arguments go to ctest and leave the sanitizers out: bash deploy/test.sh -R storage
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

exclude=(-LE full)
sanitizers=(asan tsan)
while [ $# -gt 0 ]; do
  case $1 in
    --full) exclude=() ;;
    --no-sanitize) sanitizers=() ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 0 ] || sanitizers=()

run_tests() { ctest --output-on-failure --no-tests=error -j "$(nproc)" "$@"; }
minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

SECONDS=0
bash "$root/deploy/setup.sh" --test
configure_and_build
say "testing"
(cd "$build" && run_tests ${exclude[@]+"${exclude[@]}"} "$@")
times="release $(minutes $SECONDS)"

for name in ${sanitizers[@]+"${sanitizers[@]}"}; do
  started=$SECONDS
  say "building the server with sanitizers: $name"
  cmake -S "$root" --preset "$name" -B "$root/build/$name" --log-level=WARNING >&2
  NINJA_STATUS='[%f/%t, %e s] ' ninja -C "$root/build/$name" >&2
  built=$((SECONDS - started))
  say "testing with sanitizers: $name"
  (cd "$root/build/$name" && run_tests)
  times="$times, $name $(minutes $((SECONDS - started))) (build $(minutes $built))"
done
say "all tests passed in $(minutes $SECONDS): $times"
