{{/*
Name of the chart's app: the chart's own, save in a release that was made for Karpenter. There it is Karpenter's, so that
objects, service account (to which IAM roles are bound) and selector (which cannot be changed) stay as they are.
*/}}
{{- define "mortise.name" -}}
{{- $isKarpenters := contains "karpenter" .Release.Name }}
{{- if and .Release.IsUpgrade (not $isKarpenters) }}
{{- $old := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-karpenter" .Release.Name | trunc 63 | trimSuffix "-") }}
{{- $isKarpenters = eq .Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $old) }}
{{- end }}
{{- default (ternary "karpenter" .Chart.Name $isKarpenters) .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of the objects: the override, or the release with the chart's name unless it holds it already. */}}
{{- define "mortise.fullname" -}}
{{- $name := include "mortise.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of the service account. */}}
{{- define "mortise.serviceAccountName" -}}
{{- $made := ternary (include "mortise.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $made .Values.serviceAccount.name }}
{{- end }}

{{/* Labels by which the pods are found. */}}
{{- define "mortise.selectorLabels" -}}
app.kubernetes.io/name: {{ include "mortise.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "mortise.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "mortise.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object, to stand below its metadata. */}}
{{- define "mortise.metadata" -}}
labels:
  {{- include "mortise.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The one subject of every binding. */}}
{{- define "mortise.subjects" -}}
- kind: ServiceAccount
  name: {{ include "mortise.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* Namespace of the policies: that of the release, save that nobody may patch the ConfigMaps of kube-system. */}}
{{- define "mortise.policyNamespace" -}}
{{- $own := ternary "mortise-policies" .Release.Namespace (eq .Release.Namespace "kube-system") }}
{{- default $own .Values.settings.policyNamespace }}
{{- end }}

{{/* Image with tag, and digest if given. */}}
{{- define "mortise.image" -}}
{{- $image := .Values.controller.image }}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Pod (anti-)affinity and spread terms: a term without a selector gets the chart's own. */}}
{{- define "mortise.affinity" -}}
{{- $selector := dict "matchLabels" (include "mortise.selectorLabels" . | fromYaml) }}
{{- $affinity := deepCopy .Values.affinity }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- with get $affinity $kind }}
{{- range $term := default list .requiredDuringSchedulingIgnoredDuringExecution }}
{{- if not (hasKey $term "labelSelector") }}{{ $_ := set $term "labelSelector" $selector }}{{ end }}
{{- end }}
{{- range $weighted := default list .preferredDuringSchedulingIgnoredDuringExecution }}
{{- $term := $weighted.podAffinityTerm }}
{{- if not (hasKey $term "labelSelector") }}{{ $_ := set $term "labelSelector" $selector }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- define "mortise.topologySpreadConstraints" -}}
{{- $selector := dict "matchLabels" (include "mortise.selectorLabels" . | fromYaml) }}
{{- $constraints := deepCopy .Values.topologySpreadConstraints }}
{{- range $constraint := $constraints }}
{{- if not (hasKey $constraint "labelSelector") }}{{ $_ := set $constraint "labelSelector" $selector }}{{ end }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}

{{/* Something where a switch is on, which may come as a word (`--set-string`); nothing where it is off. */}}
{{- define "mortise.isOn" -}}
{{- if has (lower (toString .)) (list "true" "t" "1") }}on{{ end }}
{{- end }}

{{/* Whether pods are nominated: on, off or auto. YAML reads an off without quotes as false. */}}
{{- define "mortise.nominations" -}}
{{- $given := toString .Values.settings.nominatePlannedPods }}
{{- get (dict "true" "on" "false" "off") $given | default $given }}
{{- end }}

{{/* Something where it matters how many pods workloads want. */}}
{{- define "mortise.watchesWorkloads" -}}
{{- $settings := .Values.settings }}
{{- include "mortise.isOn" $settings.planComingPods }}
{{- include "mortise.isOn" $settings.featureGates.capacityBuffer }}
{{- if $settings.schedulerConfig }}on{{ end }}
{{- end }}

{{/* Name=bool pairs of a map of gates, in Karpenter's spelling. */}}
{{- define "mortise.featureGates" -}}
{{- $pairs := list }}
{{- range $gate, $on := . }}
{{- $pairs = append $pairs (printf "%s=%v" (ternary "NodeClassCEL" (title $gate) (eq $gate "nodeClassCEL")) $on) }}
{{- end }}
{{- join "," $pairs }}
{{- end }}

{{/* What would install and not run is refused, with the way out. */}}
{{- define "mortise.check" -}}
{{- $image := .Values.controller.image }}
{{- if hasSuffix "karpenter/controller" $image.repository }}
{{- fail (printf "controller.image.repository %s holds Karpenter: take it out of the values, or name your image of Mortise" $image.repository) }}
{{- end }}
{{- if and (regexMatch "^v?1[.][0-9]+[.][0-9]+$" (toString $image.tag)) (hasPrefix "0." .Chart.AppVersion) }}
{{- fail (printf "controller.image.tag %s is a version of Karpenter: take controller.image.tag and digest out of the values, or name those of your image of Mortise" $image.tag) }}
{{- end }}
{{- if and $image.digest (not (hasPrefix "sha256:" $image.digest)) }}
{{- fail (printf "controller.image.digest %s has no sha256: prefix: write sha256:%s" $image.digest $image.digest) }}
{{- end }}
{{- end }}
