# What the blocks of a page stand on when they run on a cluster: sourced before them by tests/it/book/on_a_cluster.rs.
# KUBECONFIG names the cluster, and ~/.kube/config is the same file.

# What a reader ends by Ctrl-C ends by itself here.
for_a_while() {
  local status=0
  timeout 20 "$@" || status=$?
  [ "$status" = 0 ] || [ "$status" = 124 ]
}
kubectl() {
  case " $* " in
  *' --watch '*) for_a_while kubectl "$@" ;;
  *) command kubectl "$@" ;;
  esac
}
mortise() {
  case "$1" in
  controller) for_a_while mortise "$@" --metrics-port 0 --health-probe-port 0 ;;
  *) command mortise "$@" ;;
  esac
}
kwok() {
  if type -P kwok >/dev/null; then
    for_a_while kwok "$@" --server-address 127.0.0.1:0
  fi
}

# A controller for a cluster of that name, whose release is in that namespace.
controller() {
  command mortise controller --cloud simulated --boot 3s --termination 3s --batch-idle-duration 1s --cluster-name "$1" \
    --system-namespace "$2" --feature-gates StaticCapacity=true --metrics-port 0 --health-probe-port 0 \
    >>controller.log 2>&1 &
}
until_there_is() {
  local tries=0
  until command kubectl get "$@" -o name 2>/dev/null | grep -q .; do
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || { echo "there is no $*"; return 1; }
    sleep 1
  done
}

# A node of nobody's that kwok keeps, with more labels or without.
fake_node() {
  command kubectl create -f - <<EOF
apiVersion: v1
kind: Node
metadata:
  name: $1
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: $1, kubernetes.io/os: linux, kubernetes.io/arch: amd64, topology.kubernetes.io/zone: $1${2:+, $2}}
spec: {taints: [{key: CriticalAddonsOnly, effect: NoSchedule}]}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "50"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "50"}
EOF
}
# A Deployment that anything may be told of.
fake_deployment() {
  command kubectl get namespace "$1" >/dev/null || command kubectl create namespace "$1"
  command kubectl --namespace "$1" create deployment "$2" --image example.com/"$2"
}
# The class `default` of the controller's cluster.
default_class() {
  command kubectl apply -f - <<EOF
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: KarpenterNodeRole-$1
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: $1}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: $1}}]
EOF
}
# A definition that lets everything through, of versions of which the first is stored.
old_definition() {
  local group=$1 plural=$2 kind=$3 version first=true
  shift 3
  {
    cat <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $plural.$group}
spec:
  group: $group
  scope: Cluster
  names: {plural: $plural, kind: $kind}
  versions:
EOF
    for version in "$@"; do
      echo "  - name: $version"
      echo "    served: true"
      echo "    storage: $first"
      echo "    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
      first=false
    done
  } | command kubectl apply -f -
  command kubectl wait --for=condition=Established "crd/$plural.$group"
}
# Documents of a file that have a text in them.
documents() {
  awk -v text="$2" 'BEGIN { RS = "---\n" } $0 ~ text { printf "---\n%s", $0 }' "$1"
}
definitions() {
  local tries=0
  command mortise crds | command kubectl apply --server-side --force-conflicts -f -
  command kubectl wait --for=condition=Established crd --all >/dev/null
  # The documents of an API server follow its definitions after a while.
  until command kubectl explain nodepools >explained 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { cat explained; return 1; }
    sleep 1
  done
}

# What cannot go yet is tried again after a minute or two, and at once where it changes: a definition so new that its
# objects cannot be listed, a namespace whose kinds are not all known.
delete_for_good() {
  local kind=$1 names=$2 tries
  for tries in $(seq 60); do
    command kubectl get "$kind" -o name | { grep -E "$names" || true; } >left
    [ -s left ] || return 0
    xargs kubectl delete --ignore-not-found --timeout=3s <left || true
    command kubectl annotate --overwrite $(cat left) "try=$tries" || true
  done
  echo "$kind are left"
  return 1
}

# Nothing is left of the page before this one, or of this one for the next.
clean() {
  local kind release namespace
  for kind in nodepools nodeclaims ec2nodeclasses provisioners awsnodetemplates nodes; do
    # Nobody is there any more to do what a finalizer waits for.
    command kubectl get "$kind" -o name >objects
    xargs -r -I OBJECT kubectl patch OBJECT --type merge -p '{"metadata": {"finalizers": null}}' <objects
    xargs -r kubectl delete --ignore-not-found <objects
  done
  helm list -A -o json | tr '{' '\n' | sed -n 's/.*"name":"\([^"]*\)","namespace":"\([^"]*\)".*/\1 \2/p' >releases
  while read -r release namespace; do helm uninstall "$release" --namespace "$namespace"; done <releases
  command kubectl delete deployments --all --namespace default
  # Namespaces first: while definitions go, it is not known which kinds a namespace may hold.
  delete_for_good namespaces '/(mortise|mortise-policies|karpenter)$' || return
  delete_for_good crds 'karpenter|autoscaling.x-k8s.io' || return
  command kubectl --namespace kube-system delete deployments,leases --all
} >clean.log 2>&1
