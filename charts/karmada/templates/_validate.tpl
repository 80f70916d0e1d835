{{/*
Checks of values that the schema cannot express. Each message names the value and the remedy.
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
{{- end }}
{{- end }}
