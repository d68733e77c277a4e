#!/usr/bin/env bash
# cuda_compiles.sh SOURCE OBJECT NVCC FLAG...: compiles the device file, every warning an error.
set -euo pipefail
source=$1 object=$2
shift 2
if [ ! -x "$1" ]; then
  echo "skipped: nvcc was not found when this was configured"
  exit 77
fi
"$@" -Werror all-warnings -c "$source" -o "$object"
echo "compiled $source: $(stat -c %s "$object") bytes"
