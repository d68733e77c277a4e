#!/usr/bin/env bash
# quickstart.sh on a built tree: trains the small form, leaves the files, stops its server.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NORMLAB_BUILD_DIR=$1 NORMLAB_HTTP_PORT=0 NORMLAB_GRPC_PORT=0
start=$(date +%s)
bash "$root/deploy/quickstart.sh" --once --layers 6 --steps 30 --data-dir "$folder/data" \
  --out "$folder/out" > "$folder/shown"
cat "$folder/shown"
grep -q '^Dashboard: http://127.0.0.1:' "$folder/shown"
[ "$(wc -l < "$folder/out/article.csv")" -eq 91 ]
grep -q '</svg>' "$folder/out/article.svg"
[ ! -e "$folder/data/endpoint.json" ] || { echo "the server was not stopped" >&2; exit 1; }
if pgrep -f "normlabd --data-dir $folder/data" >/dev/null; then
  echo "the server still runs" >&2
  exit 1
fi
echo "quickstart took $(($(date +%s) - start)) s on a built tree"
