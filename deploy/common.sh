# Shared by the scripts of this folder; sourced, not run.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${NORMLAB_BUILD_DIR:-$root/build/release}

say() { printf '\n== %s\n' "$*" >&2; }
die() { printf 'normlab: %s\n' "$*" >&2; exit 1; }

# list FILE: its lines without comments.
list() { grep -v '^#' "$1"; }

# Which of the package lists fits this system.
distribution() {
  local ID= VERSION_ID=
  [ -r /etc/os-release ] && . /etc/os-release
  local name="${ID:-unknown}-${VERSION_ID:-}"
  [ -f "$root/deploy/packages/$name.txt" ] ||
    die "this system ($name) is not one of those normlab is tested on: $(cd "$root/deploy/packages" && ls | grep -v '^test' | sed 's/\.txt$//' | tr '\n' ' ')
Elsewhere, install by hand what a list in deploy/packages names, and then run in $root:
  python3 -m venv .venv && .venv/bin/pip install -r deploy/requirements.txt
  cmake --preset release && cmake --build --preset release"
  printf '%s\n' "$name"
}

# install_packages FILE...: installs what is missing, or says exactly how.
install_packages() {
  local missing=() package
  for package in $(for file in "$@"; do list "$file"; done); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      die "packages are missing, and this user cannot install them without a password. As root, run:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    fi
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# python_environment FOLDER REQUIREMENTS: a virtual environment that holds just these, made once.
python_environment() {
  local folder=$1 requirements=$2 stamp
  stamp=$(python3 --version; cat "$requirements" $(sed -n "s#^-r #$(dirname "$requirements")/#p" "$requirements"))
  [ -f "$folder/normlab-stamp" ] && [ "$(cat "$folder/normlab-stamp")" = "$stamp" ] && return 0
  say "installing the Python packages of ${requirements#"$root/"} into ${folder#"$root/"} (minutes)"
  # One that was left half made, or by another release of Python, has no pip.
  "$folder/bin/python" -m pip --version >/dev/null 2>&1 || python3 -m venv --clear "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
  printf '%s\n' "$stamp" > "$folder/normlab-stamp"
}

# configure_and_build TARGET...: a Release build of the targets (all when none is named).
configure_and_build() {
  # Again when the environment changed: what CMake found there may have moved.
  if [ ! -f "$build/build.ninja" ] || [ "$root/.venv/normlab-stamp" -nt "$build/build.ninja" ]; then
    say "configuring"
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >&2
  fi
  say "building"
  NINJA_STATUS='[%f/%t, %e s] ' ninja -C "$build" "$@" >&2
}

# measure HEADING COMMAND...: runs it, and remembers the heading when it fails. With $only set, it
# leaves out what does not have that in its heading.
missed=()
measured=0
measure() {
  [[ $1 == *"${only:-}"* ]] || return 0
  say "$1"
  measured=$((measured + 1))
  local code=0
  "${@:2}" || code=$?
  [ $code -eq 0 ] || missed+=("$1 (exit code $code)")
}

# tell_missed: names what measure remembers, and ends the script accordingly.
tell_missed() {
  [ $measured -gt 0 ] || die "no heading has \"${only:-}\" in it"
  [ ${#missed[@]} -gt 0 ] || { say "no bound was missed in $measured measurements"; exit 0; }
  say "MISSED: ${#missed[@]} of $measured"
  printf '  %s\n' "${missed[@]}" >&2
  exit 1
}
