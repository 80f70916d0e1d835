package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPromotedTemplate(t *testing.T) {
	tests := map[string]struct{ member, want string }{
		"fields of the member cluster are removed": {
			member: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: "1"
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{manager: kubectl}]
  ownerReferences: [{kind: App, name: a, uid: "2"}]
  finalizers: [a.io/b]
  labels: {app: web}
  annotations: {deployment.kubernetes.io/revision: "3", team: red}
spec: {replicas: 2}
status: {replicas: 2}
`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations: {team: red, work.karmada.io/conflict-resolution: overwrite}
spec: {replicas: 2}
`,
		},
		"metadata of another control plane is removed": {
			member: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  labels: {karmada.io/managed: "true", work.karmada.io/permanent-id: x, app: web}
  annotations: {work.karmada.io/namespace: karmada-es-m1, work.karmada.io/name: a-1, resourcetemplate.karmada.io/uid: "9"}
data: {a: b}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  labels: {app: web}
  annotations: {work.karmada.io/conflict-resolution: overwrite}
data: {a: b}
`,
		},
		"a conflict resolution of the user is kept": {
			member: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  annotations: {work.karmada.io/conflict-resolution: abort}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  annotations: {work.karmada.io/conflict-resolution: abort}
`,
		},
		"addresses of a Service are removed": {
			member: `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}
`,
			want: `
apiVersion: v1
kind: Service
metadata:
  name: a
  namespace: shop
  annotations: {work.karmada.io/conflict-resolution: overwrite}
spec: {ports: [{port: 80}]}
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := parseObject(t, test.member)
			before := member.DeepCopy()
			if diff := cmp.Diff(parseObject(t, test.want).Object, newPromotedTemplate(member).Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, member.Object); diff != "" {
				t.Errorf("the member object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestTemplateIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.MapOf(rapid.SampledFrom([]string{
			"app", "karmada.io/managed", "work.karmada.io/permanent-id", "work.karmada.io/conflict-resolution", "work.karmada.io/name", "team",
		}), rapid.StringMatching(`[a-z]{1,4}`))
		member := &unstructured.Unstructured{Object: map[string]any{}}
		member.SetAPIVersion("v1")
		member.SetKind(rapid.SampledFrom([]string{"ConfigMap", "Service", "Secret", "Job"}).Draw(t, "kind"))
		member.SetName("a")
		member.SetLabels(text.Draw(t, "labels"))
		member.SetAnnotations(text.Draw(t, "annotations"))
		once := newPromotedTemplate(member)
		if diff := cmp.Diff(once.Object, newPromotedTemplate(once).Object); diff != "" {
			t.Fatalf("(-first +second):\n%s", diff)
		}
	})
}

func TestPromotionPolicy(t *testing.T) {
	const spec = `
  conflictResolution: Overwrite
  placement: {clusterAffinity: {clusterNames: [m1]}}
`
	tests := map[string]struct {
		object, name string
		dependencies bool
		want         string
	}{
		"a PropagationPolicy with a generated name": {
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: default, name: nginx}}",
			want: `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: default, name: nginx-6d7f8d5f5b}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: nginx}]` + spec,
		},
		"a given name, with dependencies": {
			object: "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: keys}}", name: "mine", dependencies: true,
			want: `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: default, name: mine}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: default, name: keys}]` + spec,
		},
		"a ClusterPropagationPolicy for a cluster-scoped object": {
			object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'team:Red'}}",
			want: `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: team.red-54499c54c}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: 'team:Red'}]` + spec,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			made := newPromotionPolicy(parseObject(t, test.object), "m1", test.name, test.dependencies)
			text, err := yaml.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseObject(t, test.want).Object, parseObject(t, string(text)).Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckPromotable(t *testing.T) {
	tests := map[string]struct {
		object  string
		wantErr bool
	}{
		"a workload":                          {"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: b}}", false},
		"a cluster-scoped object":             {"{apiVersion: v1, kind: PersistentVolume, metadata: {name: b}}", false},
		"an event":                            {"{apiVersion: v1, kind: Event, metadata: {namespace: a, name: b}}", true},
		"a lease":                             {"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: a, name: b}}", true},
		"an object in a namespace of Karmada": {"{apiVersion: v1, kind: Secret, metadata: {namespace: karmada-cluster, name: b}}", true},
		"a namespace of Karmada":              {"{apiVersion: v1, kind: Namespace, metadata: {name: karmada-system}}", true},
		"an object in kube-system":            {"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: mine}}", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := validatePromotable(parseObject(t, test.object)); (err != nil) != test.wantErr {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestManager(t *testing.T) {
	kept := "{metadata: {labels: {karmada.io/managed: 'true'}, annotations: {work.karmada.io/namespace: karmada-es-m1, work.karmada.io/name: web-1}}}"
	for text, want := range map[string]string{kept: "karmada-es-m1/web-1", "{metadata: {labels: {karmada.io/managed: 'false'}}}": ""} {
		if got := managingWorkOf(parseObject(t, text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
