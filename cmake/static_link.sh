#!/bin/sh
# static_link.sh ARCHIVE... -- COMMAND...
#
# Runs a link command with archives in the place of shared libraries: those of the same names are left
# out, and the archives go, in a group, behind everything else, with what they need of the system.
archives=
while [ "$1" != -- ]; do
  archives="$archives $1"
  shift
done
shift
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  name=${argument##*/}
  name=${name%%.so*}
  case "$argument" in
    -l*) name=lib${argument#-l} ;;
  esac
  case "$archives " in
    *"/$name.a "*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
# The names have no blanks: CMake found them in the compiler's own folders.
exec "$@" -Wl,--start-group $archives -Wl,--end-group -lssl -lcrypto -lz -lpthread -ldl
