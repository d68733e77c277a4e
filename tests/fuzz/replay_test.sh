#!/bin/sh
# replay_test.sh PROGRAM INPUT...: an input that breaks something ends the replay, and is kept beside
# the program and not in the working folder, whatever that is.
set -u
program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "$input: $1" >&2; exit 1; }
for input in "$@"; do
  rm -f "$program.crash"
  mkdir corpus
  printf 'sound' >corpus/a
  printf '%s' "$input" >corpus/b
  ASAN_OPTIONS=detect_leaks=0 "$program" corpus 2>said && fail "the replay went on"
  grep -q "the input is kept in $program.crash" said || fail "nothing says where the input is: $(cat said)"
  [ "$(cat "$program.crash")" = "$input" ] || fail "something else was kept"
  rm -r corpus said "$program.crash"
  [ -z "$(ls -A)" ] || fail "there is something in the working folder: $(ls -A)"
done
