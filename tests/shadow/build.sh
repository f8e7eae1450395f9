#!/bin/bash
# build.sh VERSION FOLDER: Karpenter's controller for kwok of that version, from Go modules, as FOLDER/VERSION/controller,
# its definitions as FOLDER/VERSION/crds and its instance types as FOLDER/VERSION/instance_types.json.
set -eu
version=$1 folder=$2/$1 core=sigs.k8s.io/karpenter
[ ! -x "$folder/controller" ] || exit 0
mkdir -p "$folder"
# Unpacked by hand and told of an older Go: `go` refuses a module that asks for a later patch of the language than it
# is itself.
if [ ! -d "$folder/core" ]; then
  go mod download "$core@$version" > /dev/null 2>&1 || true
  python3 -m zipfile -e "$(go env GOMODCACHE)/cache/download/$core/@v/$version.zip" "$folder/zip"
  mv "$folder/zip/$core@$version" "$folder/core"
  rm -r "$folder/zip"
  sed -i 's/^go 1\.\([0-9]*\)\..*/go 1.\1.0/; /^toolchain/d' "$folder/core/go.mod"
fi
cd "$folder/core"
flags="-s -w -X $core/pkg/operator.Version=${version#v}"
GOFLAGS="-buildvcs=false -mod=mod" nice -n 19 go build -p 2 -ldflags "$flags" -o "$folder/controller" ./kwok
cp -r kwok/charts/crds "$folder/"
cp kwok/apis/crds/*.yaml "$folder/crds/"
cp kwok/cloudprovider/instance_types.json "$folder/"
