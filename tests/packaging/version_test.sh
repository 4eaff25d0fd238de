#!/bin/bash
# Versions by cmake/version.cmake: in a clone with tags, without, in an archive, and inside another repository.
command -v git > /dev/null || exit 77
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
failed=0
expect() {  # FOLDER PATTERN WHEN
  local found
  found=$(cmake -P "$1/cmake/version.cmake" 2>&1 | sed 's/^-- //')
  if ! grep -qE "^$2\$" <<< "$found"; then
    echo "$3: expected $2 instead of '$found'" >&2
    failed=1
  fi
}
clone=$folder/clone
mkdir -p "$clone/cmake"
cp "$source/cmake/version.cmake" "$source/cmake/archive_version.txt" "$clone/cmake/"
cp "$source/.gitattributes" "$clone/"
release=$(sed -n 's/^set(emplace_release \(.*\))$/\1/p' "$clone/cmake/version.cmake")
expect "$clone" "$release $release" "sources without git"
cd "$clone"
git init -q .
git add .
git commit -qm first
expect "$clone" "$release $release" "a clone without tags"
git tag not-a-version
git tag v3.14.15
expect "$clone" "3.14.15 3.14.15" "at a tag"
git archive --prefix=tagged/ HEAD | tar -x -C "$folder"
expect "$folder/tagged" "3.14.15 3.14.15" "an archive of a tag"
git commit -q --allow-empty -m second
expect "$clone" "3.14.15 3.14.15\\+1\\.g[0-9a-f]+" "one commit later"
git archive --prefix=later/ HEAD | tar -x -C "$folder"
expect "$folder/later" "3.14.15 3.14.15\\+1\\.g[0-9a-f]+" "an archive of one commit later"
mkdir -p inside/cmake
cp cmake/* inside/cmake/
expect "$clone/inside" "$release $release" "copied into another repository"
exit $failed
