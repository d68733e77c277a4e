#!/usr/bin/env bash
# From a fresh clone to the article's experiment: installs, builds, serves, trains, shows.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: bash deploy/quickstart.sh [--once] [--out DIR] [--data-dir DIR] [settings of the runs]

Installs what is missing, builds normlab, starts its server on loopback, trains the article's
three runs with live curves, prints the table and writes article.csv and article.svg.

  --once          stop the server at the end (otherwise it stays until Ctrl-C)
  --out DIR       where article.csv and article.svg go (default: normlab-article)
  --data-dir DIR  where the server keeps everything (default: as normlabd's)

Every setting of a run may be given as well:

  bash deploy/quickstart.sh --once --layers 6 --steps 30
EOF
}

once=0
out=normlab-article
settings=()
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --once) once=1 ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --out=*) out=${1#--out=} ;;
    --data-dir) export NORMLAB_DATA_DIR=${2:?--data-dir needs a folder}; shift ;;
    --data-dir=*) export NORMLAB_DATA_DIR=${1#--data-dir=} ;;
    *) settings+=("$1") ;;
  esac
  shift
done

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
bash "$root/deploy/setup.sh"
configure_and_build normlabd normlab-trainer normlab-shepherd normlab
bin=$build/bin
data=${NORMLAB_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/normlab}
export NORMLAB_DATA_DIR=$data

# One that serves this data folder already is used, and left alone at the end.
server=
stop_server() {
  [ -n "$server" ] || return 0
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_or_zero() { if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo 0; else echo "$1"; fi; }

if ! "$bin/normlab" devices >/dev/null 2>&1; then
  say "starting the server"
  mkdir -p "$(dirname "$data")"
  (umask 077; mkdir -p "$data")
  rm -f "$data/endpoint.json"
  "$bin/normlabd" --data-dir "$data" --http "127.0.0.1:${NORMLAB_HTTP_PORT:-$(free_or_zero 8710)}" \
    --grpc "127.0.0.1:${NORMLAB_GRPC_PORT:-$(free_or_zero 8711)}" 2>>"$data/server.log" &
  server=$!
  until [ -f "$data/endpoint.json" ]; do
    kill -0 "$server" 2>/dev/null || { tail -n 5 "$data/server.log" >&2; die "the server did not start; its log is $data/server.log"; }
    sleep 0.05
  done
fi

"$bin/normlab" article --out "$out" ${settings[@]+"${settings[@]}"}

printf '\nDashboard: %s\n' "$("$bin/normlab" open --print)"
if [ "$once" -eq 1 ] || [ -z "$server" ]; then
  exit 0
fi
printf 'The link works once, for 60 s; get another with: %s --data-dir %s open\nThe server stays until Ctrl-C.\n' \
  "$bin/normlab" "$data"
wait "$server"
