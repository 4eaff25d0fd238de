#!/bin/sh
# Whether web/page.html is what web/src builds. Usage: build_test.sh WEB
cd "$1" || exit 2
if ! command -v node >/dev/null || ! [ -d node_modules ]; then
  echo "skipped: needs node, and npm ci in web/"
  exit 77
fi
node_modules/.bin/tsc --noEmit && node build.mjs --check
