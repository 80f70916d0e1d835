{{/*
The spec of a Job that runs one installation step. The step renders this chart with the same values.
Arguments: root, name, job, step, and optionally account (without it, the Job has no permissions in the host cluster),
values (the Secret with the values), volumes (a list as in karmada.deployment) and arguments (a list).
*/}}
{{- define "karmada.jobSpec" -}}
{{- $component := include "karmada.component" (dict "root" .root "values" (dict)) | fromJson -}}
backoffLimit: {{ .job.backoffLimit }}
activeDeadlineSeconds: {{ .job.activeDeadlineSeconds }}
template:
  metadata:
    labels: {{- include "karmada.labels" (dict "root" .root "name" .name) | nindent 6 }}
  spec:
    {{- with .account }}
    serviceAccountName: {{ quote . }}
    {{- end }}
    automountServiceAccountToken: {{ hasKey . "account" }}
    enableServiceLinks: false
    restartPolicy: Never
    securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 6 }}
    {{- with $component.priorityClassName }}
    priorityClassName: {{ quote . }}
    {{- end }}
    {{- include "karmada.pullSecrets" (concat .root.Values.global.imagePullSecrets $component.image.pullSecrets) | nindent 4 }}
    {{- with .job.nodeSelector }}
    nodeSelector: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .job.tolerations }}
    tolerations: {{- toYaml . | nindent 4 }}
    {{- end }}
    containers:
    - name: {{ .step }}
      image: {{ include "karmada.image" (dict "root" .root "image" $component.image) | quote }}
      imagePullPolicy: {{ $component.image.pullPolicy | default .root.Values.karmadaImagePullPolicy }}
      command:
      - /bin/karmadactl
      - installation
      - {{ .step }}
      - {{ printf "--release=%s" .root.Release.Name | quote }}
      - {{ printf "--namespace=%s" .root.Release.Namespace | quote }}
      {{- if .values }}
      - --values=/etc/karmada/installation/values.yaml
      {{- end }}
      {{- range .arguments }}
      - {{ quote . }}
      {{- end }}
      {{- with .job.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      securityContext: {{- toYaml .root.Values.containerSecurityContext | nindent 8 }}
      {{- $volumes := .volumes | default list }}
      {{- with .values }}
      {{- $volumes = append $volumes (dict "name" "values" "mountPath" "/etc/karmada/installation" "secret" . "keys" (list "values.yaml")) }}
      {{- end }}
      {{- if $volumes }}
      volumeMounts:
      {{- range $volumes }}
      - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
      {{- end }}
    volumes:
    {{- range $volumes }}
    {{- include "karmada.secretVolume" . | nindent 4 }}
    {{- end }}
    {{- end }}
{{- end }}

{{/*
The service account of a Job that runs an installation step, and its permissions in the namespace.
Arguments: root, name, rules (of the Role), and optionally annotations.
*/}}
{{- define "karmada.account" -}}
{{- $metadata := dict "name" .name "namespace" .root.Release.Namespace "labels" (include "karmada.labels" (dict "root" .root "name" .name) | fromYaml) -}}
{{- with .annotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
apiVersion: v1
kind: ServiceAccount
metadata: {{- toYaml $metadata | nindent 2 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{- toYaml $metadata | nindent 2 }}
rules: {{- toYaml .rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{- toYaml $metadata | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ quote .name }}}
subjects:
- {kind: ServiceAccount, name: {{ quote .name }}, namespace: {{ .root.Release.Namespace | quote }}}
{{- end }}

{{/* The names of the Secrets with certificates and kubeconfigs, as a YAML list. */}}
{{- define "karmada.certificateSecrets" -}}
- {{ include "karmada.secret.certificates" . | quote }}
- {{ include "karmada.secret.webhook" . | quote }}
{{- if eq .Values.etcd.mode "internal" }}
- {{ include "karmada.secret.etcd" . | quote }}
{{- end }}
{{- if .Values.naming.configPerComponent }}
{{- range list "karmada-aggregated-apiserver" "karmada-controller-manager" "karmada-descheduler" "karmada-metrics-adapter" "karmada-scheduler" "karmada-search" "karmada-webhook" "kube-controller-manager" }}
- {{ include "karmada.secret.kubeconfig" (dict "root" $ "component" .) | quote }}
{{- end }}
{{- else }}
- {{ include "karmada.secret.kubeconfig" (dict "root" .) | quote }}
{{- end }}
{{- end }}

{{/* The names of a control plane's Deployments in the host cluster, as a YAML list. */}}
{{- define "karmada.hostDeployments" -}}
- {{ include "karmada.name.apiServer" . | quote }}
{{- if not (include "karmada.hasBuiltInServers" .) }}
- {{ include "karmada.name.aggregatedApiServer" . | quote }}
- {{ include "karmada.name.webhook" . | quote }}
{{- end }}
- {{ include "karmada.name.kubeControllerManager" . | quote }}
- {{ include "karmada.name.controllerManager" . | quote }}
- {{ include "karmada.name.scheduler" . | quote }}
{{- if include "karmada.hasSearch" . }}
- {{ include "karmada.name.search" . | quote }}
{{- end }}
{{- end }}

{{/*
The permissions of a Job that issues certificates: it writes their Secrets, and restarts the workloads that
use them. The permission to create cannot be limited to names. Pods explain why a workload is not ready.
*/}}
{{- define "karmada.certificateRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{- include "karmada.certificateSecrets" . | nindent 2 }}
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: {{- include "karmada.hostDeployments" . | nindent 2 }}
  verbs: [get, patch]
{{- if eq .Values.etcd.mode "internal" }}
- apiGroups: [apps]
  resources: [statefulsets]
  resourceNames: [{{ include "karmada.name.etcd" . | quote }}]
  verbs: [get, patch]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/*
The values of the Job that sets up a control plane. Values files for other releases of the chart have
tolerations and the node selector of this Job in preInstallJob.
*/}}
{{- define "karmada.setupJob" -}}
{{- $job := deepCopy .Values.setupJob -}}
{{- range $key := list "tolerations" "nodeSelector" }}
{{- if not (get $job $key) }}{{ $_ := set $job $key (get ($.Values.preInstallJob | default dict) $key) }}{{ end }}
{{- end -}}
{{ toYaml $job }}
{{- end }}
