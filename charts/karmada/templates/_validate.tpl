{{/*
Validation that the schema cannot express. Each message names the value and the remedy.
*/}}
{{- define "karmada.validate" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$" .Release.Name) }}
{{- fail (printf "the name %q of the release cannot be used in names of Services: use at most 32 lower case letters, digits and dashes, and begin with a letter" .Release.Name) }}
{{- end }}
{{- if eq .Values.installMode "component" }}
{{- if not .Values.components }}
{{- fail "components is empty: with installMode component, list at least one of schedulerEstimator, descheduler, search" }}
{{- end }}
{{- range .Values.components }}
{{- if has . (list "metricsAdapter") }}
{{- fail (printf "components: %s is not part of this version of Karmada: remove it from the list" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq .Values.installMode "host" }}
{{- if and .Values.networkPolicies.enabled .Values.apiServer.hostNetwork }}
{{- fail "networkPolicies.enabled: a NetworkPolicy cannot select the Pods of an API server in the network of the node: set apiServer.hostNetwork to false" }}
{{- end }}
{{- if eq .Values.etcd.mode "internal" }}
{{- include "karmada.validateEtcd" . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Members that are added to a running etcd by another number of replicas would start a cluster of their
own: two of three could form an empty one. A full volume stops etcd.
*/}}
{{- define "karmada.validateEtcd" -}}
{{- $etcd := include "karmada.component" (dict "root" . "values" .Values.etcd.internal) | fromJson }}
{{- $wanted := int $etcd.replicaCount }}
{{- $installed := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "karmada.name.etcd" .) }}
{{- range dig "spec" "template" "spec" "containers" list $installed }}
{{- range .command }}
{{- if hasPrefix "--initial-cluster=" . }}
{{- $members := len (splitList "," .) }}
{{- if ne $members $wanted }}
{{- fail (printf "etcd.internal.replicaCount is %d, and the installed etcd has %d: new members could form an empty cluster beside the one with your data. Keep %d, or restore a backup into a new installation with %d, as docs/high-availability.md describes" $wanted $members $members $wanted) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $names := dict }}
{{- range $etcd.extraArgs }}
{{- $name := first (splitList "=" .) }}
{{- if hasKey $names $name }}
{{- fail (printf "etcd.internal.extraArgs contains %s twice: etcd would use only one of the values. Keep one of them (karmadactl init: --etcd-extra-args)" $name) }}
{{- end }}
{{- $_ := set $names $name true }}
{{- if and (eq $etcd.storageType "pvc") (eq $name "--quota-backend-bytes") (not (regexMatch "^--quota-backend-bytes=(0|[1-9][0-9]{0,17})$" .)) }}
{{- fail (printf "etcd.internal.extraArgs contains %s: with a volume, the quota must be a decimal number of bytes, such as 8589934592, because etcd without a quota would fill the volume and stop; 0 means 2147483648, the default of etcd (karmadactl init: --etcd-extra-args)" .) }}
{{- end }}
{{- end }}
{{- if eq $etcd.storageType "pvc" }}
{{- $size := include "karmada.bytes" $etcd.pvc.size | float64 }}
{{- $quota := include "karmada.etcdQuota" $etcd | float64 }}
{{- /* etcd's log and snapshots are stored beside its data. */}}
{{- $needed := addf $quota 1073741824 }}
{{- if lt $size $needed }}
{{- fail (printf "etcd.internal.pvc.size is %s (%.0f bytes), and etcd may use %.0f bytes for data (--quota-backend-bytes) and needs 1Gi for its log: it would fill the volume and stop. Set etcd.internal.pvc.size (karmadactl init: --etcd-pvc-size) to at least %.0fGi, or a smaller quota with --quota-backend-bytes in etcd.internal.extraArgs (--etcd-extra-args)" $etcd.pvc.size $size $quota (divf $needed 1073741824 | ceil)) }}
{{- end }}
{{- end }}
{{- end }}
