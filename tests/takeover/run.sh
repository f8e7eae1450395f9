#!/bin/bash
# run.sh [--kill] [VERSION...]: the takeover, there and back, with each of these Karpenters; ends with the table.
# KUBECONFIG names a cluster that has nothing in it and where kwok plays kubelets; MORTISE_BINARY is what takes over.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${MORTISE_TAKEOVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mortise/takeover}
python=${MORTISE_MOTO_PYTHON:-python3}
kill=
[ "${1:-}" != --kill ] || { kill=--kill; shift; }

skip() { echo "skipped: $1"; exit 0; }
[ -n "${KUBECONFIG:-}" ] || skip "KUBECONFIG names no cluster"
[ -x "${MORTISE_BINARY:-}" ] || skip "MORTISE_BINARY names no binary"
command -v go > /dev/null || skip "there is no Go to build Karpenter with"
"$python" -c "import moto.server, boto3" 2> /dev/null || skip "$python has no moto"

[ $# != 0 ] || set -- v1.12.0 v1.13.1 v1.14.3 v1.15.0
for version; do
  "$here/build.sh" "$version" "$cache/peers"
  "$python" -B "$here/takeover.py" "$version=$cache/peers/$version/controller:$cache/peers/$version/crds" \
    --mortise "$MORTISE_BINARY" --out "$cache/$version" $kill
done
"$python" -B "$here/table.py" "${@/#/$cache/}"
