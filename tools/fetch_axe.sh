#!/bin/sh
# Fetches axe-core, which checks the console's pages for accessibility, into the cache; for tests alone, never installed.
set -eu

version=4.10.3
sum=880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb
cache="${XDG_CACHE_HOME:-$HOME/.cache}/axe-core-$version"
[ -f "$cache/axe.min.js" ] && exit 0
command -v npm >/dev/null || { echo "npm is missing: install it to check accessibility (Debian: apt install npm)" >&2; exit 1; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
(cd "$directory" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf axe-core-*.tgz package/axe.min.js)
echo "$sum  $directory/package/axe.min.js" | sha256sum --check --quiet
mkdir -p "$cache"
mv "$directory/package/axe.min.js" "$cache/axe.min.js"
