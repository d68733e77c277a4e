#!/usr/bin/env bash
# Installs what building and running normlab needs; with --test also what its tests need. Does
# nothing that was done before.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=("$root/deploy/packages/$(distribution).txt")
[ "${1:-}" = --test ] && packages+=("$root/deploy/packages/test.txt")
install_packages "${packages[@]}"
python_environment "$root/.venv" "$root/deploy/requirements.txt"
if [ "${1:-}" = --test ]; then
  python_environment "$root/.venv-test" "$root/tests/requirements.txt"
fi
