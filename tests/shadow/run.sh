#!/bin/bash
# run.sh [SECONDS]: `mortise shadow` beside Karpenter's own binary for kwok while Deployments grow and shrink; ends with
# the report, the memory of the shadow, and what the API server's audit log says that the shadow asked for.
# KUBECONFIG names a cluster that has nothing in it and where kwok plays kubelets, AUDIT_LOG its audit log (of level
# Metadata or more, as JSON), and MORTISE_BINARY is who watches. Exit code 1 where the shadow did anything but read.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${MORTISE_SHADOW_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mortise/shadow}
version=${KARPENTER_VERSION:-v1.15.0} seconds=${1:-600} user=system:serviceaccount:shadowed:shadow

skip() { echo "skipped: $1"; exit 0; }
[ -n "${KUBECONFIG:-}" ] || skip "KUBECONFIG names no cluster"
[ -x "${MORTISE_BINARY:-}" ] || skip "MORTISE_BINARY names no binary"
[ -r "${AUDIT_LOG:-}" ] || skip "AUDIT_LOG names no audit log"
command -v go > /dev/null || skip "there is no Go to build Karpenter with"

"$here/build.sh" "$version" "$cache"
peer=$cache/$version out=$cache/out
mkdir -p "$out"
kubectl apply --server-side -f "$peer/crds" > /dev/null
kubectl wait --for=condition=Established crd --all --timeout=30s > /dev/null
kubectl apply -f "$here/world.yaml" > /dev/null
kubectl -n shadowed create serviceaccount shadow > /dev/null
"$MORTISE_BINARY" shadow --rbac | kubectl apply -f - > /dev/null
kubectl create clusterrolebinding shadow --clusterrole=mortise-shadow --user="$user" > /dev/null

# The shadow's own kubeconfig: the same cluster, and a user who may do no more than its role says.
own=$out/kubeconfig
kubectl config view --raw --minify --flatten > "$own"
kubectl --kubeconfig "$own" config set-credentials shadow \
  --token="$(kubectl -n shadowed create token shadow --duration=2h)" > /dev/null
kubectl --kubeconfig "$own" config set-context --current --user=shadow > /dev/null

started=()
trap 'kill "${started[@]}" 2> /dev/null || true' EXIT
LEADER_ELECTION_NAMESPACE=kube-system SYSTEM_NAMESPACE=kube-system KUBERNETES_MIN_VERSION=1.19.0-0 \
  METRICS_PORT=${TP_KARP_METRICS:-26080} HEALTH_PROBE_PORT=${TP_KARP_HEALTH:-26081} \
  "$peer/controller" > "$out/karpenter.log" 2>&1 &
started+=($!)
scale() { for it; do kubectl -n shadowed scale "deployment/${it%=*}" --replicas="${it#*=}" > /dev/null; done; }
scale web=40 api=20 cache=10
sleep 40 # so that the shadow starts beside nodes that are there

"$MORTISE_BINARY" shadow --kubeconfig "$own" --for "${seconds}s" --instance-types "$peer/instance_types.json" \
  > "$out/report.txt" 2> "$out/shadow.log" &
shadow=$!
started+=("$shadow")
# Up and down, a tenth of the time each.
steps=("web=200 api=60" "batch=40 cache=60" "web=320" "web=120 api=120" "batch=5" "batch=60 cache=20" "web=300 api=30" "web=60" "batch=0 cache=40")
for step in "${steps[@]}"; do
  sleep $((seconds / 10))
  grep VmHWM "/proc/$shadow/status" | tr -s ' \t' ' ' || break
  # shellcheck disable=SC2086 # one word for each Deployment
  scale $step
done
# The peak is gone with the process: the last look at it is a moment before its end.
while kill -0 "$shadow" 2> /dev/null; do
  cp "/proc/$shadow/status" "$out/status.next" 2> /dev/null && grep -q VmHWM "$out/status.next" && mv "$out/status.next" "$out/status"
  sleep 0.5
done
wait "$shadow" || { tail "$out/shadow.log"; exit 1; }
cat "$out/report.txt"
grep -E "VmHWM|VmRSS|RssAnon|RssFile" "$out/status"
python3 - "$AUDIT_LOG" "$user" <<'P'
import collections, json, sys
asked = collections.Counter()
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["user"]["username"] == sys.argv[2]:
        asked[event["verb"]] += 1
print("asked, by the audit log:", ", ".join(f"{count} {verb}" for verb, count in sorted(asked.items())))
sys.exit(0 if asked and set(asked) <= {"get", "list", "watch"} else 1)
P
