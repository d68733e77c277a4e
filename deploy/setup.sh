#!/usr/bin/env bash
# Installs what building and running normlab needs; with --test also what its tests need. Does
# nothing that was done before.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

lists=$root/deploy/packages
system=$(distribution)
packages=("$lists/$system.txt")
if [ "${1:-}" = --test ]; then
  # A system's own list of them, or the one for all.
  tests=$lists/test-$system.txt
  [ -f "$tests" ] || tests=$lists/test.txt
  packages+=("$tests")
fi
install_packages "${packages[@]}"
python_environment "$root/.venv" "$root/deploy/requirements.txt"
if [ "${1:-}" = --test ]; then
  python_environment "$root/.venv-test" "$root/tests/requirements.txt"
fi
