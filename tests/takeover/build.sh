#!/bin/bash
# build.sh VERSION FOLDER: Karpenter's controller for AWS of that version, from Go modules, as
# FOLDER/VERSION/controller, and its definitions as FOLDER/VERSION/crds.
set -eu
version=$1 folder=$2/$1 provider=github.com/aws/karpenter-provider-aws core=sigs.k8s.io/karpenter
[ ! -x "$folder/controller" ] || exit 0
mkdir -p "$folder"
export GOFLAGS="-buildvcs=false -mod=mod"

# Unpacked by hand and told of an older Go: `go` refuses a module that asks for a later patch of the language than it
# is itself.
unpack() {
  [ ! -d "$folder/$3" ] || return 0
  go mod download "$1@$2" > /dev/null 2>&1 || true
  python3 -m zipfile -e "$(go env GOMODCACHE)/cache/download/$1/@v/$2.zip" "$folder/zip"
  mv "$folder/zip/$1@$2" "$folder/$3"
  rm -r "$folder/zip"
  sed -i 's/^go 1\.\([0-9]*\)\..*/go 1.\1.0/; /^toolchain/d' "$folder/$3/go.mod"
}

unpack $provider "$version" provider
cd "$folder/provider"
unpack $core "$(go list -m -f '{{.Version}}' $core)" core
go mod edit -replace "$core=$folder/core"
# An interface that nothing but their tests use, of a module that proxies do not have in every version.
sed -i '/service\/timestreamwrite"$/d; /^type TimestreamWriteAPI /,/^}/d' pkg/aws/sdk.go
flags="-s -w -X $core/pkg/operator.Version=${version#v}"
nice -n 19 go build -p 2 -ldflags "$flags" -o "$folder/controller" ./cmd/controller
cp -r pkg/apis/crds "$folder/"
