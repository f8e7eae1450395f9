#!/bin/bash
# build.sh VERSION FOLDER: Karpenter's controller for AWS of that version, from Go modules, as
# FOLDER/VERSION/controller, and its definitions as FOLDER/VERSION/crds.
set -eu
version=$1 folder=$2/$1 provider=github.com/aws/karpenter-provider-aws core=sigs.k8s.io/karpenter
[ ! -x "$folder/controller" ] || exit 0
mkdir -p "$folder"
export GOFLAGS="-buildvcs=false -mod=mod"

unpack=$(cd "$(dirname "$0")/../support" && pwd)/unpack-module.sh
"$unpack" $provider "$version" "$folder/provider"
cd "$folder/provider"
"$unpack" $core "$(go list -m -f '{{.Version}}' $core)" "$folder/core"
go mod edit -replace "$core=$folder/core"
# An interface that nothing but their tests use, of a module that proxies do not have in every version.
sed -i '/service\/timestreamwrite"$/d; /^type TimestreamWriteAPI /,/^}/d' pkg/aws/sdk.go
flags="-s -w -X $core/pkg/operator.Version=${version#v}"
nice -n 19 go build -p 2 -ldflags "$flags" -o "$folder/controller" ./cmd/controller
cp -r pkg/apis/crds "$folder/"
