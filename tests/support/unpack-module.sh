#!/bin/bash
# unpack-module.sh MODULE VERSION FOLDER: the Go module, as a folder that may be changed and built.
# Unpacked by hand and told of an older Go: `go` refuses a module that asks for a later patch of the language than it
# is itself.
set -eu
module=$1 version=$2 folder=$3
[ ! -d "$folder" ] || exit 0
go mod download "$module@$version" > /dev/null 2>&1 || true
scratch=$(mktemp -d "$folder.XXXXXX")
python3 -m zipfile -e "$(go env GOMODCACHE)/cache/download/$module/@v/$version.zip" "$scratch"
sed -i 's/^go 1\.\([0-9]*\)\..*/go 1.\1.0/; /^toolchain/d' "$scratch/$module@$version/go.mod"
mv "$scratch/$module@$version" "$folder"
rm -r "$scratch"
