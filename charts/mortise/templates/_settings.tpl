{{/* Environment variables from the settings; what is empty is left out. Written by `just tables`. */}}
{{- define "mortise.settingsEnv" -}}
{{- $settings := .Values.settings }}
{{- $isRecorded := eq "on" (include "mortise.isOn" .Values.policyRecords.enabled) }}
{{- $env := dict
  "AMI_REFRESH_INTERVAL" $settings.amiRefreshInterval
  "AWS_FEATURE_GATES" (include "mortise.featureGates" $settings.awsFeatureGates)
  "BATCH_IDLE_DURATION" $settings.batchIdleDuration
  "BATCH_MAX_DURATION" $settings.batchMaxDuration
  "CLUSTER_CA_BUNDLE" $settings.clusterCABundle
  "CLUSTER_ENDPOINT" $settings.clusterEndpoint
  "CLUSTER_NAME" (required "settings.clusterName is required: set it to the name of the EKS cluster" $settings.clusterName)
  "DISABLE_CLUSTER_STATE_OBSERVABILITY" $settings.disableClusterStateObservability
  "DISABLE_DRY_RUN" $settings.disableDryRun
  "EKS_CONTROL_PLANE" $settings.eksControlPlane
  "ENABLE_PROFILING" $settings.enableProfiling
  "ENABLE_ZONAL_SHIFT" $settings.enableZonalShift
  "FEATURE_GATES" (include "mortise.featureGates" $settings.featureGates)
  "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port
  "IGNORE_DRA_REQUESTS" $settings.ignoreDRARequests
  "INTERRUPTION_QUEUE" $settings.interruptionQueue
  "ISOLATED_VPC" $settings.isolatedVPC
  "KARPENTER_SERVICE" (include "mortise.fullname" .)
  "LEGACY_NODE_REPAIR" $settings.legacyNodeRepair
  "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths)
  "LOG_LEVEL" .Values.logLevel
  "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths)
  "METRICS_PORT" .Values.controller.metrics.port
  "MIN_VALUES_POLICY" $settings.minValuesPolicy
  "MORTISE_ALLOW_POLICY_AUTHORITY_REPLACE" $settings.allowPolicyAuthorityReplace
  "MORTISE_METRICS_CERT_DIR" (ternary "/var/run/mortise/metrics-certificate" "" (not (empty .Values.controller.metrics.certSecret)))
  "MORTISE_METRICS_SECURE" .Values.controller.metrics.secure
  "MORTISE_NOMINATE_PLANNED_PODS" (include "mortise.nominations" .)
  "MORTISE_PLAN_COMING_PODS" $settings.planComingPods
  "MORTISE_POLICY_NAMESPACE" (include "mortise.policyNamespace" .)
  "MORTISE_POLICY_RECORDS" (ternary "/var/lib/mortise/policy-records" "" $isRecorded)
  "MORTISE_POLICY_RECORDS_SIZE" (ternary .Values.policyRecords.size "" $isRecorded)
  "PREFERENCE_POLICY" $settings.preferencePolicy
  "RESERVED_ENIS" $settings.reservedENIs
  "SCHEDULER_CONFIG" (empty $settings.schedulerConfig | ternary "" (toJson $settings.schedulerConfig))
  "SUBNET_REFRESH_INTERVAL" $settings.subnetRefreshInterval
  "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent
}}
{{- range $name, $value := $env }}
{{- if not (has (toString $value) (list "" "<nil>")) }}
- name: {{ $name }}
  value: {{ tpl (toString $value) $ | quote }}
{{- end }}
{{- end }}
{{- end }}
