{{/*
A kubeconfig without references to files.
Arguments: server, caCrt, crt, key (PEM), and optionally cluster and user, the names of its entries.
*/}}
{{- define "karmada.kubeconfig" -}}
{{- $cluster := .cluster | default "karmada-apiserver" -}}
{{- $user := .user | default "karmada-admin" -}}
apiVersion: v1
kind: Config
clusters:
- name: {{ quote $cluster }}
  cluster:
    server: {{ quote .server }}
    certificate-authority-data: {{ b64enc .caCrt }}
users:
- name: {{ quote $user }}
  user:
    client-certificate-data: {{ b64enc .crt }}
    client-key-data: {{ b64enc .key }}
contexts:
- name: {{ quote $cluster }}
  context: {cluster: {{ quote $cluster }}, user: {{ quote $user }}}
current-context: {{ quote $cluster }}
{{ end }}
