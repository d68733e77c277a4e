#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer, AddressSanitizer and UBSan, and runs one after another:
#   bash deploy/fuzz.sh [SECONDS [TARGET...]]      60 seconds each; all targets of tests/fuzz
# Starts from tests/fuzz/corpus. What is new stays in build/fuzz/found/TARGET, and an input that breaks
# a property, crashes or hangs in build/fuzz/faults: mend it, and keep the input in the corpus.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || die "usage: bash deploy/fuzz.sh [SECONDS [TARGET...]]"
shift $(($# > 0 ? 1 : 0))
folder=$root/build/fuzz

# Coroutines and ranges of libstdc++ need clang 16; libFuzzer comes in a package of its own.
find_clang() {
  local version program
  for version in 21 20 19 18 17 16; do
    command -v "clang++-$version" >/dev/null || continue
    printf 'int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
      "clang-$version" -fsanitize=fuzzer,address -x c -o /dev/null - 2>/dev/null &&
      { printf '%s\n' "$version"; return 0; }
  done
  return 1
}
clang=$(find_clang) || die "no clang of version 16 or later with libFuzzer was found. On Debian 12:
  apt-get install -y --no-install-recommends clang-19 libclang-rt-19-dev
(on Debian 13 and Ubuntu 24.04 as well, or any version that they have from 16 on)"

say "building the fuzz targets with clang $clang"
cmake -S "$root" --preset fuzz -B "$folder" \
  -DCMAKE_C_COMPILER="clang-$clang" -DCMAKE_CXX_COMPILER="clang++-$clang" >&2
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in "$root"/tests/fuzz/*_fuzz.cc; do
    targets+=("$(basename "$source" _fuzz.cc)")
  done
fi
ninja -C "$folder" "${targets[@]/%/_fuzz}" >&2

mkdir -p "$folder/faults"
failed=()
for target in "${targets[@]}"; do
  say "fuzzing $target for $seconds s"
  mkdir -p "$folder/found/$target"
  nice -n 19 "$folder/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=8192 -print_final_stats=1 -artifact_prefix="$folder/faults/$target-" \
    "$folder/found/$target" "$root/tests/fuzz/corpus/$target" \
    >"$folder/$target.log" 2>&1 || failed+=("$target")
  grep -E '^stat::(number_of_executed_units|new_units_added|peak_rss_mb)|^SUMMARY|does not hold|runtime error' \
    "$folder/$target.log" || true
done
[ ${#failed[@]} -eq 0 ] ||
  die "faults in: ${failed[*]}; see $folder/TARGET.log, the inputs are in $folder/faults"
say "no faults in ${#targets[@]} targets"
