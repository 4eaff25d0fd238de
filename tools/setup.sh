#!/bin/sh
# Installs what is missing of tools/packages.txt. Touches no network when nothing is missing.
set -eu
here=$(dirname "$0")
packages=$(grep -v '^#' "$here/packages.txt")

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "This is not a Debian system: the build needs the equivalents of these Debian 12 packages:" >&2
  echo "$packages" | sed 's/^/  /' >&2
  # Whoever has them may go on; CMake names the first library that is missing.
  if command -v cmake >/dev/null 2>&1 && command -v ninja >/dev/null 2>&1; then exit 0; fi
  exit 1
fi

# One question for all: a process for each takes half a second.
# shellcheck disable=SC2086,SC2016
installed=$(dpkg-query -W -f='${db:Status-Status}:${Package} ' $packages 2>/dev/null || true)
missing=""
for package in $packages; do
  case " $installed" in
    *" installed:$package "*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

echo "installing:$missing"
as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "These packages are missing, and there is no sudo to install them with:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
# The package lists may be absent on a fresh machine.
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
