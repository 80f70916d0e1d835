{{/*
The names of the objects. Arguments: the root context.
*/}}
{{- define "karmada.name.etcd" -}}etcd{{- end }}
{{- define "karmada.name.apiServer" -}}{{ .Release.Name }}-apiserver{{- end }}
{{- define "karmada.name.aggregatedApiServer" -}}{{ .Release.Name }}-aggregated-apiserver{{- end }}
{{- define "karmada.name.kubeControllerManager" -}}{{ .Values.naming.kubeControllerManager | default (printf "%s-kube-controller-manager" .Release.Name) }}{{- end }}
{{- define "karmada.name.controllerManager" -}}{{ .Release.Name }}-controller-manager{{- end }}
{{- define "karmada.name.scheduler" -}}{{ .Release.Name }}-scheduler{{- end }}
{{- define "karmada.name.webhook" -}}{{ .Release.Name }}-webhook{{- end }}
{{- define "karmada.name.descheduler" -}}{{ .Release.Name }}-descheduler{{- end }}
{{- define "karmada.name.search" -}}{{ .Release.Name }}-search{{- end }}
{{- define "karmada.name.agent" -}}{{ .Release.Name }}-agent{{- end }}
{{/* The release of the control plane to which the objects belong. */}}
{{- define "karmada.controlPlaneRelease" -}}{{ ternary .Values.controlPlaneRelease .Release.Name (eq .Values.installMode "component") }}{{- end }}
{{- define "karmada.secret.certificates" -}}{{ include "karmada.controlPlaneRelease" . }}-cert{{- end }}
{{- define "karmada.secret.webhook" -}}{{ .Release.Name }}-webhook-cert{{- end }}
{{- define "karmada.secret.etcd" -}}etcd-cert{{- end }}

{{/*
The Secret with a component's kubeconfig for the control plane.
Arguments: root, component (such as karmada-scheduler).
*/}}
{{- define "karmada.secret.kubeconfig" -}}
{{- if .root.Values.naming.configPerComponent -}}
{{ .component }}-config
{{- else -}}
{{ include "karmada.controlPlaneRelease" .root }}-kubeconfig
{{- end -}}
{{- end }}

{{/* The kubeconfig's key in its Secret. */}}
{{- define "karmada.kubeconfigKey" -}}{{ ternary "karmada.config" "kubeconfig" .Values.naming.configPerComponent }}{{- end }}

{{/* The DNS name of a Service in the host cluster. Arguments: root, service. */}}
{{- define "karmada.serviceHost" -}}{{ .service }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}{{- end }}

{{/* Not empty if the release contains karmada-search. */}}
{{- define "karmada.hasSearch" -}}
{{- if and (ne .Values.installMode "agent") (has "search" .Values.components) }}true{{ end -}}
{{- end }}

{{/* The API server's URL for clients inside the host cluster. */}}
{{- define "karmada.internalURL" -}}
https://{{ include "karmada.serviceHost" (dict "root" . "service" (include "karmada.name.apiServer" .)) }}:5443
{{- end }}

{{/* The API server's URL for clients outside the host cluster. */}}
{{- define "karmada.externalURL" -}}{{ .Values.apiServer.externalURL | default (include "karmada.internalURL" .) }}{{- end }}

{{/* Not empty if the API server contains the webhook and the aggregated API server. */}}
{{- define "karmada.hasBuiltInServers" -}}
{{- if eq .Values.apiServer.program "karmada-apiserver" }}true{{ end -}}
{{- end }}

{{/* The URLs of etcd, comma separated. */}}
{{- define "karmada.etcdServers" -}}
{{- if eq .Values.etcd.mode "external" -}}
{{ required "etcd.external.servers is missing: set it to the URLs of the external etcd" .Values.etcd.external.servers }}
{{- else -}}
{{- $etcd := include "karmada.component" (dict "root" . "values" .Values.etcd.internal) | fromJson -}}
{{- $servers := list -}}
{{- range until (int $etcd.replicaCount) -}}
{{- $servers = append $servers (printf "https://etcd-%d.%s:2379" . (include "karmada.serviceHost" (dict "root" $ "service" "etcd"))) -}}
{{- end -}}
{{ join "," $servers }}
{{- end -}}
{{- end }}

{{/* An API server's arguments for its etcd, as a YAML list. */}}
{{- define "karmada.etcdArguments" -}}
- {{ printf "--etcd-servers=%s" (include "karmada.etcdServers" .) | quote }}
- --etcd-cafile=/etc/karmada/pki/etcd-ca.crt
- --etcd-certfile=/etc/karmada/pki/etcd-client.crt
- --etcd-keyfile=/etc/karmada/pki/etcd-client.key
{{- if and (eq .Values.etcd.mode "external") .Values.etcd.external.registryPrefix }}
- {{ printf "--etcd-prefix=%s" .Values.etcd.external.registryPrefix | quote }}
{{- end }}
{{- end }}

{{/* A component's values, merged over all components' default values, as JSON. Arguments: root, values. */}}
{{- define "karmada.component" -}}
{{- $component := mustMergeOverwrite (deepCopy .root.Values.componentDefaults) (deepCopy .values) -}}
{{- if ne $component.strategy.type "RollingUpdate" }}{{ $_ := unset $component.strategy "rollingUpdate" }}{{ end -}}
{{ toJson $component }}
{{- end }}

{{/*
The labels of an object. Labels of the user do not replace those of the chart, by which Services and
workloads select Pods.
Arguments: root, name, and optionally component (its values) and more (more labels).
*/}}
{{- define "karmada.labels" -}}
{{- $own := dict
  "app" .name
  "app.kubernetes.io/part-of" "karmada"
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/component" .name -}}
{{- $given := dict -}}
{{- with .component }}{{ $given = .labels }}{{ end -}}
{{ merge $own (.more | default dict) $given .root.Values.global.commonLabels | toYaml }}
{{- end }}

{{/* The image of a component. A tag cannot contain the + of a version. Arguments: root, image. */}}
{{- define "karmada.image" -}}
{{- $tag := .image.tag | default .root.Values.karmadaImageVersion | default (.root.Chart.AppVersion | default "" | replace "+" "_") | required "karmadaImageVersion is missing: set it to the tag of the image, because this chart does not belong to a release" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- if and (eq $registry "") (eq .image.repository "karmada/karmada") }}
{{- fail "no registry of the image is configured, and there is no public image: build the image, mirror it to a registry or load it into the nodes, as docs/image.md describes, and set global.imageRegistry or componentDefaults.image.registry (karmadactl: --private-image-registry)" }}
{{- end }}
{{- $repository := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- $image := printf (ternary "%s@%s" "%s:%s" (hasPrefix "sha256:" $tag)) $repository $tag -}}
{{- if not (regexMatch (include "karmada.imagePattern" .) $image) }}
{{- fail (printf "the name %q of an image is not valid: it has the form HOST:PORT/PATH/NAME:TAG or NAME@sha256:DIGEST, in lower case besides the tag, and without https://. Correct global.imageRegistry, karmadaImageVersion, or registry, repository and tag of the image in componentDefaults or in the component (karmadactl: --private-image-registry, --kube-image-registry, or the flag of the image)" $image) }}
{{- end }}
{{- $image -}}
{{- end }}

{{/* The regular expression for image names. It must be equal to the one in package rendering. */}}
{{- define "karmada.imagePattern" -}}
^([a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@sha256:[0-9a-f]{64})?$
{{- end }}

{{/*
The arguments of a program as a YAML list: the defaults, without those that the user replaces, and
then the arguments of the user in alphabetical order.
Arguments: arguments (list), extra (list).
*/}}
{{- define "karmada.arguments" -}}
{{- $replaced := dict -}}
{{- range .extra }}{{ $_ := set $replaced (first (splitList "=" .)) true }}{{ end -}}
{{- range .arguments }}
{{- if not (hasKey $replaced (first (splitList "=" .))) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- range sortAlpha .extra }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The maximum size of etcd's data in bytes. 0 means etcd's own default. Argument: etcd. */}}
{{- define "karmada.etcdQuota" -}}
{{- $quota := "8589934592" -}}
{{- range .extraArgs }}{{ if hasPrefix "--quota-backend-bytes=" . }}{{ $quota = trimPrefix "--quota-backend-bytes=" . }}{{ end }}{{ end -}}
{{- ternary "2147483648" $quota (eq $quota "0") -}}
{{- end }}

{{/* The number of bytes of a quantity such as 10Gi. Argument: the quantity. */}}
{{- define "karmada.bytes" -}}
{{- $quantity := toString . -}}
{{- $suffix := regexFind "[A-Za-z]*$" $quantity -}}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- if not (hasKey $factors $suffix) }}{{ fail (printf "%q is not a size: use a quantity such as 10Gi" $quantity) }}{{ end -}}
{{- mulf (trimSuffix $suffix $quantity | float64) (get $factors $suffix) -}}
{{- end }}

{{/* The argument --feature-gates for a map of gates, or an empty list. */}}
{{- define "karmada.featureGates" -}}
{{- $gates := list -}}
{{- range $name, $on := . }}{{ $gates = append $gates (printf "%s=%t" $name $on) }}{{ end -}}
{{- if $gates }}
- {{ printf "--feature-gates=%s" (join "," $gates) | quote }}
{{- end }}
{{- end }}

{{/*
The rules that place a component's Pods and spread its replicas over nodes and zones.
Arguments: name, component, and optionally separate (replicas must not share a node).
*/}}
{{- define "karmada.placement" -}}
{{- $selector := dict "matchLabels" (dict "app" .name) }}
{{- with .component.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .component.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- if .component.affinity }}
affinity: {{- toYaml .component.affinity | nindent 2 }}
{{- else if gt (int .component.replicaCount) 1 }}
affinity:
  podAntiAffinity:
    {{- if .separate }}
    requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector: {{- toYaml $selector | nindent 8 }}
    {{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector: {{- toYaml $selector | nindent 10 }}
    {{- end }}
{{- end }}
{{- if .component.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml .component.topologySpreadConstraints | nindent 0 }}
{{- else if gt (int .component.replicaCount) 1 }}
topologySpreadConstraints:
- topologyKey: topology.kubernetes.io/zone
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {{- toYaml $selector | nindent 4 }}
{{- end }}
{{- end }}

{{/*
The Pod fields that all workloads share.
Arguments: root, name, component, and optionally securityContext, serviceAccount and separate.
*/}}
{{- define "karmada.podFields" -}}
{{- with .serviceAccount }}
serviceAccountName: {{ quote . }}
{{- end }}
automountServiceAccountToken: {{ hasKey . "serviceAccount" }}
enableServiceLinks: false
{{- with .component.priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
securityContext: {{- toYaml (.securityContext | default .root.Values.podSecurityContext) | nindent 2 }}
{{- include "karmada.pullSecrets" (concat .root.Values.global.imagePullSecrets .component.image.pullSecrets) }}
{{- include "karmada.placement" . }}
{{- end }}

{{/* The Secrets with which a node pulls images. Argument: their names, or {name: NAME} as in a Pod. */}}
{{- define "karmada.pullSecrets" -}}
{{- $references := list }}
{{- range . }}{{ $references = append $references (kindIs "string" . | ternary (dict "name" .) .) }}{{ end }}
{{- with uniq $references }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The arguments with which a program finds the members' estimators, as a YAML list. */}}
{{- define "karmada.estimatorArguments" -}}
- {{ printf "--scheduler-estimator-service-namespace=%s" .Release.Namespace | quote }}
- {{ printf "--scheduler-estimator-service-prefix=%s-scheduler-estimator" (include "karmada.controlPlaneRelease" .) | quote }}
- --scheduler-estimator-ca-file=/etc/karmada/pki/ca.crt
- --scheduler-estimator-cert-file=/etc/karmada/pki/karmada.crt
- --scheduler-estimator-key-file=/etc/karmada/pki/karmada.key
{{- end }}

{{/*
The annotation that replaces the Pods when the certificates of the user change. Certificates of the
installation are not in the values, and the Job that issues them replaces the Pods.
*/}}
{{- define "karmada.hashAnnotation" -}}
{{- if and (eq .Values.installMode "host") (eq .Values.certs.mode "custom") -}}
karmada.io/config-hash: {{ printf "%s %s" (toJson .Values.certs.custom) (toJson .Values.etcd.external.certs) | sha256sum | trunc 16 | quote }}
{{- end }}
{{- end }}

{{/* A volume with the given keys of a Secret. Arguments: name, secret, keys (list of key or key=path). */}}
{{- define "karmada.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ quote .secret }}
    items:
    {{- range .keys }}
    - {key: {{ first (splitList "=" .) | quote }}, path: {{ last (splitList "=" .) | quote }}}
    {{- end }}
{{- end }}

{{/*
The Deployment of a program, and its PodDisruptionBudget if it has several replicas.
Arguments:
  root, name, component (its values)
  program      the name of the executable
  arguments    list
  ports        list of {name, port}
  liveness, readiness, startup   {path, port, scheme, threshold}; readiness defaults to liveness
  volumes      list of {name, mountPath, secret, keys}, or {name, mountPath, emptyDir} for a directory
               of the container
and optionally
  container       its name
  serviceAccount
  podAnnotations
*/}}
{{- define "karmada.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ quote .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "karmada.labels" . | nindent 4 }}
spec:
  replicas: {{ int .component.replicaCount }}
  strategy: {{- toYaml .component.strategy | nindent 4 }}
  selector:
    matchLabels: {app: {{ quote .name }}}
  template:
    metadata:
      labels: {{- include "karmada.labels" (merge (dict "more" .component.podLabels) .) | nindent 8 }}
      {{- with merge (dict) (.podAnnotations | default dict) .component.podAnnotations (include "karmada.hashAnnotation" .root | fromYaml) }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "karmada.podFields" . | nindent 6 }}
      {{- if .component.hostNetwork }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      containers:
      - name: {{ .container | default .name | quote }}
        image: {{ include "karmada.image" (dict "root" .root "image" .component.image) | quote }}
        imagePullPolicy: {{ .component.image.pullPolicy | default .root.Values.karmadaImagePullPolicy }}
        command:
        - {{ .program }}
        {{- include "karmada.arguments" (dict "arguments" .arguments "extra" .component.extraArgs) | nindent 8 }}
        ports:
        {{- range .ports }}
        - {name: {{ .name }}, containerPort: {{ .port }}, protocol: TCP}
        {{- end }}
        {{- /* Components serve requests as soon as the control plane's objects exist. */}}
        startupProbe: {{- include "karmada.probe" (merge (dict "period" 2 "threshold" 90) .liveness) | nindent 10 }}
        livenessProbe: {{- include "karmada.probe" (merge (dict "period" 15 "threshold" 3) .liveness) | nindent 10 }}
        readinessProbe: {{- include "karmada.probe" (merge (dict "period" 3 "threshold" 3) (.readiness | default .liveness)) | nindent 10 }}
        {{- with .component.resources }}
        resources: {{- toYaml . | nindent 10 }}
        {{- end }}
        terminationMessagePolicy: FallbackToLogsOnError
        securityContext: {{- toYaml .root.Values.containerSecurityContext | nindent 10 }}
        volumeMounts:
        {{- range .volumes }}
        - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: {{ not (hasKey . "emptyDir") }}}
        {{- end }}
      volumes:
      {{- range .volumes }}
      {{- if hasKey . "emptyDir" }}
      - name: {{ .name }}
        emptyDir: {{- toYaml .emptyDir | nindent 10 }}
      {{- else }}
      {{- include "karmada.secretVolume" . | nindent 6 }}
      {{- end }}
      {{- end }}
{{ include "karmada.podDisruptionBudget" . }}
{{- end }}

{{- define "karmada.probe" -}}
httpGet: {path: {{ .path }}, port: {{ .port }}, scheme: {{ .scheme | default "HTTP" }}}
periodSeconds: {{ .period }}
timeoutSeconds: 5
failureThreshold: {{ .threshold }}
{{- end }}

{{/* Arguments: root, name, component. */}}
{{- define "karmada.podDisruptionBudget" -}}
{{- $budget := .component.podDisruptionBudget | default .root.Values.podDisruptionBudget -}}
{{- /* A budget may have only one of both fields, and the default value sets maxUnavailable. */}}
{{- if hasKey ($budget | default dict) "minAvailable" }}{{ $budget = omit $budget "maxUnavailable" }}{{ end -}}
{{- if and $budget (gt (int .component.replicaCount) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ quote .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "karmada.labels" . | nindent 4 }}
spec:
  {{- toYaml $budget | nindent 2 }}
  selector:
    matchLabels: {app: {{ quote .name }}}
{{- end }}
{{- end }}

{{/* The volume with the kubeconfig of a component, as an argument of karmada.deployment. Arguments: root, component. */}}
{{- define "karmada.configVolume" -}}
name: config
mountPath: /etc/karmada/config
secret: {{ include "karmada.secret.kubeconfig" . | quote }}
keys: [{{ include "karmada.kubeconfigKey" .root }}=karmada.config]
{{- end }}

{{/* The volume with certificates, as an argument of karmada.deployment. Arguments: root, keys, and optionally secret. */}}
{{- define "karmada.pkiVolume" -}}
name: pki
mountPath: /etc/karmada/pki
secret: {{ .secret | default (include "karmada.secret.certificates" .root) | quote }}
keys: {{ .keys | toJson }}
{{- end }}
