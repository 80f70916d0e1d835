package searchquery

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

const podYAML = `
apiVersion: v1
kind: Pod
metadata:
  name: web-7d4f-x2x
  namespace: shop
  uid: 0a1b2c3d-0000-4000-8000-000000000001
  resourceVersion: "4711"
  creationTimestamp: "2026-11-25T10:00:00Z"
  labels: {app: web, app.kubernetes.io/part-of: online-shop, empty: ""}
  annotations:
    resource.karmada.io/cached-from-cluster: eu-west-1
    kubectl.kubernetes.io/last-applied-configuration: '{"appliedword":1}'
    example.com/note: Call the On-Call engineer
  managedFields: [{manager: fieldmanager}]
  ownerReferences: [{kind: ReplicaSet, name: web-7d4f}]
spec:
  nodeName: node-3
  priority: 0
  containers:
  - name: main
    image: docker.io/library/nginx:1.19
    args: ["--flag=Value with SPACES"]
    resources: {requests: {memory: 1536Mi, cpu: 250m}}
  - {name: side, image: "quay.io/envoy/envoy:v2"}
  initContainers: [{name: init, image: "busybox:1"}]
status:
  phase: Running
  conditions:
  - {type: PodScheduled, status: "True"}
  - {type: Ready, status: "False", reason: ContainersNotReady}
  containerStatuses:
  - {name: main, restartCount: 4, ready: true}
  - {name: side, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}
`

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop, creationTimestamp: "2026-10-01T00:00:00Z", deletionTimestamp: "2026-11-25T11:59:00Z"}
spec:
  replicas: 3
  paused: true
  template: {spec: {containers: [{name: c, image: "example.com/api:2"}]}}
status: {readyReplicas: 3}
`

const secretYAML = `
apiVersion: v1
kind: Secret
type: Opaque
metadata:
  name: credentials
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"c2VjcmV0"}}'
    example.com/note: rotated
data: {password: c2VjcmV0, tls.crt: aGVsbG8=}
stringData: {token: plaintoken}
`

const configYAML = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {nginx.conf: "worker_processes 4;\nlisten 8080;", größe: ÄRGER}
`

func decode(t testing.TB, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func document(t testing.TB, manifest string) *Document {
	t.Helper()
	return &Document{Cluster: "eu-west-1", Object: decode(t, manifest), Now: now}
}

func mustParse(t testing.TB, text string) *Query {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}
