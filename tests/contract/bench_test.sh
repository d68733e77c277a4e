#!/usr/bin/env bash
# deploy/bench.sh goes on after a bound that was missed, and says which ones at its end.
#   bench_test.sh ROOT
set -euo pipefail
root=$1
. "$root/deploy/common.sh"

# in_order ONLY: three measurements of which the middle one misses its bound.
in_order() {
  only=$1
  measure "the first" echo one
  measure "the second" false
  measure "the third" echo three
  tell_missed
}

expect() {
  [[ $2 == *"$3"* ]] || die "$1: no \"$3\" in: $2"
}

code=0; said=$( (in_order "") 2>&1) || code=$?
[ $code -eq 1 ] || die "exit code $code after a bound that was missed"
expect "goes on" "$said" "three"
expect "says which" "$said" "the second (exit code 1)"
[[ ${said##*MISSED} != *"the third"* ]] || die "a bound that was kept is named: $said"

code=0; said=$( (in_order "third") 2>&1) || code=$?
[ $code -eq 0 ] || die "exit code $code when only a bound was looked at that is kept"
[[ $said != *one* ]] || die "--only third measured something else: $said"

code=0; said=$( (in_order "nothing of it") 2>&1) || code=$?
[ $code -eq 1 ] || die "exit code $code when nothing was measured"

expect "--help" "$(bash "$root/deploy/bench.sh" --help)" "--rounds N"
for wrong in "--rounds" "--rounds 0" "--only" "--unknown"; do
  # Without quotes: words of their own.
  if said=$(bash "$root/deploy/bench.sh" $wrong 2>&1); then die "accepted: $wrong"; fi
  expect "$wrong" "$said" "--help"
done
