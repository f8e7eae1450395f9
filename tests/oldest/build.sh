#!/bin/bash
# build.sh NEWER FOLDER [VERSION]: kube-apiserver, kube-controller-manager and kube-scheduler of that Kubernetes, from
# Go modules, as FOLDER/testplane, which stands in for NEWER/testplane; kwok is the same. Seven minutes on two cores.
# Without a VERSION it is the last of the oldest minor that the chart takes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
newer=$(realpath "$1") version=${3:-v1.26.15}
[ ! -x "$2/testplane" ] || exit 0
mkdir -p "$2/source"
folder=$(cd "$2" && pwd)

minor=${version#v1.} patch=${version##*.}
minor=${minor%.*}
cd "$folder/source"
cp "$here/main.go" .
rm -f go.mod go.sum
go mod init example.com/oldest 2> /dev/null
go mod edit -require "k8s.io/kubernetes@$version"
go mod download "k8s.io/kubernetes@$version"
listed=$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/$version.mod
# Its parts, which it replaces by folders of its own; proxies do not have every part in every patch.
for part in $(sed -n 's|^\s*k8s.io/\(\S*\) => ./staging/.*|\1|p' "$listed" | sort -u); do
  for of in $(seq "$patch" -1 0); do
    ! go mod download "k8s.io/$part@v0.$minor.$of" 2> /dev/null || break
  done
  go mod edit -replace "k8s.io/$part=k8s.io/$part@v0.$minor.$of"
done
go mod tidy -e > /dev/null 2>&1

flags="-s -w"
for told in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $told.gitVersion=$version -X $told.gitMajor=1 -X $told.gitMinor=$minor"
done
nice -n 19 go build -p 2 -ldflags "$flags" -o "$folder/built" .
ln -sf "$newer/testplane" "$folder/newer"
ln -sf "$newer/kwok" "$folder/kwok"
mv "$folder/built" "$folder/testplane"
rm -r "$folder/source"
