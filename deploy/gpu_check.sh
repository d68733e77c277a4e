#!/usr/bin/env bash
# Checks the engine on this machine's GPU: builds it, compares it with the processor, sees whether it
# keeps memory budgets, and prints how fast it is beside PyTorch. Needs no network, no gRPC and no packages of the system: only nvcc,
# cmake, a C++ compiler, and a python3 (or NORMLAB_PYTHON) whose torch has CUDA. Takes minutes.
#
#   bash deploy/gpu_check.sh [build | parity | memory | speed]...     (all, without arguments)
#
# Exits 0 if all went well. Every part is bounded in time, and says what failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${NORMLAB_BUILD_DIR:-$root/build/gpu}
python=${NORMLAB_PYTHON:-python3}

say() { printf '\n== %s\n' "$*"; }
die() { printf 'gpu_check: %s\n' "$*"; exit 1; }

for tool in nvcc cmake c++ "$python"; do
  command -v "$tool" >/dev/null || die "$tool is missing"
done
torch=$("$python" -c 'import torch, os
assert torch.cuda.is_available(), "torch sees no GPU"
print(os.path.dirname(torch.__file__))') || die "no torch with a usable GPU in $python"

say "this machine"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
nvcc --version | tail -2 | head -1
"$python" -c 'import torch; print("torch", torch.__version__, "on", torch.cuda.get_device_name(0))'

build_it() {
  local generator=() architecture
  command -v ninja >/dev/null && generator=(-G Ninja)
  architecture=$("$python" -c 'import torch; print("%d%d" % torch.cuda.get_device_capability(0))')
  cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DNORMLAB_TRAINER_ONLY=ON -DNORMLAB_BUILD_TESTS=OFF -DNORMLAB_CUDA=on \
    -DNORMLAB_CUDA_ARCHITECTURES="$architecture" -DNORMLAB_TORCH_DIR="$torch" &&
    timeout 400 cmake --build "$build" --target normlab-gpu-check -j "$(nproc)"
}

parity() { timeout 240 "$build/bin/normlab-gpu-check" parity; }

memory() { timeout 120 "$build/bin/normlab-gpu-check" memory; }

speed() {
  local table
  table=$(timeout 120 "$build/bin/normlab-gpu-check" speed) || return 1
  table+=$'\n'$(timeout 240 "$python" "$root/tests/gpu/peers.py") || return 1
  printf '%s\n' "$table" | awk -F '\t' '
    BEGIN { print "| steps/s, fp32 | model | on this GPU |\n| --- | --- | ---: |" }
    NF == 3 { printf "| %s | %s | %s |\n", $1, $2, $3 }'
}

failed=()
run() {
  say "$1"
  "$2"
  local status=$?
  [ $status -eq 0 ] && return
  [ $status -eq 124 ] && echo "gpu_check: $1 took too long"
  failed+=("$1")
}

for part in "${@:-build parity memory speed}"; do
  for name in $part; do
    case $name in
      build) run "building" build_it ;;
      parity) run "parity with the processor" parity ;;
      memory) run "memory" memory ;;
      speed) run "speed" speed ;;
      *) die "unknown part $name: build, parity, memory or speed" ;;
    esac
    [ "$name" = build ] && [ ${#failed[@]} -gt 0 ] && die "FAILED: building"
  done
done
[ ${#failed[@]} -eq 0 ] || die "FAILED: ${failed[*]}"
say "all is well"
