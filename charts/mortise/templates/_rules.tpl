{{- /*
What the controller may do, one template for each role. Written from the rows of host/controllers/src/watches.rs and
host/controllers/src/rbac/rules.rs by
`cargo run -p controllers --example rbac -- charts/mortise/templates/_rules.tpl`; a test compares.
*/}}

{{- define "mortise.rules.core" -}}
# What may be bought.
- apiGroups: ["karpenter.sh"]
  resources: ["nodepools"]
  verbs: ["get", "list", "watch"]
# What was bought.
- apiGroups: ["karpenter.sh"]
  resources: ["nodeclaims"]
  verbs: ["get", "list", "watch"]
# What pods can run on.
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get", "list", "watch"]
# The labels by which affinity selects namespaces.
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list", "watch"]
# What comes onto every new node.
- apiGroups: ["apps"]
  resources: ["daemonsets"]
  verbs: ["list", "watch"]
# Whom a drain may not evict.
- apiGroups: ["policy"]
  resources: ["poddisruptionbudgets"]
  verbs: ["list", "watch"]
# Where volumes can be made.
- apiGroups: ["storage.k8s.io"]
  resources: ["storageclasses"]
  verbs: ["list", "watch"]
# Where volumes bind pods to a zone.
- apiGroups: [""]
  resources: ["persistentvolumes"]
  verbs: ["list", "watch"]
# Which volumes pods have.
- apiGroups: [""]
  resources: ["persistentvolumeclaims"]
  verbs: ["list", "watch"]
# How many volumes a node takes.
- apiGroups: ["storage.k8s.io"]
  resources: ["csinodes"]
  verbs: ["list", "watch"]
# Which volume a node that goes has yet to let go of.
- apiGroups: ["storage.k8s.io"]
  resources: ["volumeattachments"]
  verbs: ["list", "watch"]
# What runs and what waits.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]
{{- if include "mortise.watchesWorkloads" . }}
# How many pods are wanted, and how they are selected.
- apiGroups: ["apps"]
  resources: ["replicasets"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "mortise.watchesWorkloads" . }}
# The same, of pods with a name of their own.
- apiGroups: ["apps"]
  resources: ["statefulsets"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.planComingPods }}
# How many pods are about to come.
- apiGroups: ["batch"]
  resources: ["jobs"]
  verbs: ["list", "watch"]
{{- end }}
{{- if .Values.settings.schedulerConfig }}
# Which pods the scheduler's default constraints count together.
- apiGroups: [""]
  resources: ["replicationcontrollers"]
  verbs: ["list", "watch"]
{{- end }}
{{- if .Values.settings.schedulerConfig }}
# The same, of pods that serve together.
- apiGroups: [""]
  resources: ["services"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.capacityBuffer }}
# The pods for which a buffer keeps room.
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.capacityBuffer }}
# The same, as templates.
- apiGroups: [""]
  resources: ["podtemplates"]
  verbs: ["list", "watch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.capacityBuffer }}
# Room that is kept.
- apiGroups: ["autoscaling.x-k8s.io"]
  resources: ["capacitybuffers"]
  verbs: ["get", "list", "watch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.nodeOverlay }}
# Prices and capacity that are other than the cloud says.
- apiGroups: ["karpenter.sh"]
  resources: ["nodeoverlays"]
  verbs: ["list", "watch"]
{{- end }}
{{- if not (include "mortise.isOn" .Values.settings.ignoreDRARequests) }}
# The devices of nodes.
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceslices"]
  verbs: ["list", "watch"]
{{- end }}
{{- if not (include "mortise.isOn" .Values.settings.ignoreDRARequests) }}
# What devices there are to ask for.
- apiGroups: ["resource.k8s.io"]
  resources: ["deviceclasses"]
  verbs: ["list", "watch"]
{{- end }}
{{- if not (include "mortise.isOn" .Values.settings.ignoreDRARequests) }}
# Devices that pods claim.
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceclaims"]
  verbs: ["list", "watch"]
{{- end }}
{{- if not (include "mortise.isOn" .Values.settings.ignoreDRARequests) }}
# The same, as templates.
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceclaimtemplates"]
  verbs: ["list", "watch"]
{{- end }}
# Nodes are bought, marked and given back by their claims.
- apiGroups: ["karpenter.sh"]
  resources: ["nodeclaims"]
  verbs: ["create", "delete", "patch"]
# How far a node has come.
- apiGroups: ["karpenter.sh"]
  resources: ["nodeclaims/status"]
  verbs: ["patch"]
# Hashes by which drift is found, and what a pool has used.
- apiGroups: ["karpenter.sh"]
  resources: ["nodepools", "nodepools/status"]
  verbs: ["patch"]
# Labels, taints and finalizers; a node goes by being deleted.
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["delete", "patch"]
# Nodes are drained within disruption budgets.
- apiGroups: [""]
  resources: ["pods/eviction"]
  verbs: ["create"]
# A drain that is at its end leaves nobody behind.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["delete"]
{{- if include "mortise.isOn" .Values.settings.featureGates.podDeletionCostManagement }}
# Each pod carries its deletion cost. This reaches every field of a pod that may change, its images too.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["get", "patch"]
{{- end }}
{{- if ne (include "mortise.nominations" .) "off" }}
# The scheduler is told where pods are planned to go (status.nominatedNodeName).
- apiGroups: [""]
  resources: ["pods/status"]
  verbs: ["patch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.capacityBuffer }}
# Whether the room is there.
- apiGroups: ["autoscaling.x-k8s.io"]
  resources: ["capacitybuffers/status"]
  verbs: ["patch"]
{{- end }}
{{- if include "mortise.isOn" .Values.settings.featureGates.nodeOverlay }}
# Whether the overlay can be applied.
- apiGroups: ["karpenter.sh"]
  resources: ["nodeoverlays/status"]
  verbs: ["patch"]
{{- end }}
# What people are told.
- apiGroups: [""]
  resources: ["events"]
  verbs: ["create", "patch"]
{{- end }}

{{- define "mortise.rules.aws" -}}
# What instances are made of.
- apiGroups: ["karpenter.k8s.aws"]
  resources: ["ec2nodeclasses"]
  verbs: ["get", "list", "watch"]
# Hashes, finalizers, and what the names in it came to.
- apiGroups: ["karpenter.k8s.aws"]
  resources: ["ec2nodeclasses", "ec2nodeclasses/status"]
  verbs: ["patch"]
# The range of service addresses, which goes into the user data of AL2023.
- apiGroups: ["networking.k8s.io"]
  resources: ["servicecidrs"]
  resourceNames: ["kubernetes"]
  verbs: ["get"]
# The address of the cluster's DNS, which goes into the user data.
- apiGroups: [""]
  resources: ["services"]
  resourceNames: ["kube-dns"]
  verbs: ["get"]
{{- end }}

{{- define "mortise.rules.practice" -}}
# No kubelet registers what is simulated.
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["create"]
# Nor says that it is ready.
- apiGroups: [""]
  resources: ["nodes/status"]
  verbs: ["patch"]
{{- end }}

{{- define "mortise.rules.metrics" -}}
# Whose token it is that comes with a request for metrics.
- apiGroups: ["authentication.k8s.io"]
  resources: ["tokenreviews"]
  verbs: ["create"]
# And whether that one may read them.
- apiGroups: ["authorization.k8s.io"]
  resources: ["subjectaccessreviews"]
  verbs: ["create"]
{{- end }}

{{- define "mortise.rules.leaderElection" -}}
# One of the replicas leads.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  resourceNames: ["karpenter-leader-election"]
  verbs: ["get", "update"]
# Creation cannot be confined to a name.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["create"]
{{- end }}

{{- define "mortise.rules.policies" -}}
# Policies, and what they name.
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "list", "watch"]
# The annotation that says what became of a policy.
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["patch"]
{{- end }}
