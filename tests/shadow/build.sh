#!/bin/bash
# build.sh VERSION FOLDER: Karpenter's controller for kwok of that version, from Go modules, as FOLDER/VERSION/controller,
# its definitions as FOLDER/VERSION/crds and its instance types as FOLDER/VERSION/instance_types.json.
set -eu
version=$1 folder=$2/$1 core=sigs.k8s.io/karpenter
[ ! -x "$folder/controller" ] || exit 0
mkdir -p "$folder"
"$(dirname "$0")/../support/unpack-module.sh" "$core" "$version" "$folder/core"
cd "$folder/core"
flags="-s -w -X $core/pkg/operator.Version=${version#v}"
GOFLAGS="-buildvcs=false -mod=mod" nice -n 19 go build -p 2 -ldflags "$flags" -o "$folder/controller" ./kwok
cp -r kwok/charts/crds "$folder/"
cp kwok/apis/crds/*.yaml "$folder/crds/"
cp kwok/cloudprovider/instance_types.json "$folder/"
