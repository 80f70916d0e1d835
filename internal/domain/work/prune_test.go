package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func pruneCases() map[string]struct{ in, want string } {
	return map[string]struct{ in, want string }{
		"server-owned fields and status of any kind": {
			`{kind: X, status: {a: 1}, metadata: {name: x, namespace: n, creationTimestamp: null, deletionTimestamp: d, deletionGracePeriodSeconds: 1,
			  generation: 2, managedFields: [], resourceVersion: "1", selfLink: s, uid: u, ownerReferences: [], finalizers: [f], labels: {}, generateName: g}}`,
			`{kind: X, metadata: {name: x, namespace: n, labels: {}, generateName: g}}`,
		},
		"revisions of a Deployment, and the map they leave empty": {
			`{kind: Deployment, metadata: {annotations: {deployment.kubernetes.io/revision: "1", deployment.kubernetes.io/revision-history: "1"}, name: x}}`,
			`{kind: Deployment, metadata: {name: x}}`,
		},
		"revisions of another kind stay": {
			`{kind: ReplicaSet, metadata: {annotations: {deployment.kubernetes.io/revision: "1"}}}`,
			`{kind: ReplicaSet, metadata: {annotations: {deployment.kubernetes.io/revision: "1"}}}`,
		},
		"the generated selector of a Job": {
			`{kind: Job, metadata: {name: x}, spec: {ttlSecondsAfterFinished: 1, selector: {matchLabels: {controller-uid: u, batch.kubernetes.io/controller-uid: u}},
			  template: {metadata: {labels: {a: b, controller-uid: u, batch.kubernetes.io/controller-uid: u, job-name: x, batch.kubernetes.io/job-name: x}}}}}`,
			`{kind: Job, metadata: {name: x}, spec: {template: {metadata: {labels: {a: b}}}}}`,
		},
		"the user's selector of a Job stays, ttlSecondsAfterFinished does not": {
			`{kind: Job, metadata: {name: x}, spec: {manualSelector: true, ttlSecondsAfterFinished: 1, selector: {matchLabels: {controller-uid: u}},
			  template: {metadata: {labels: {job-name: x}}}}}`,
			`{kind: Job, metadata: {name: x}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {job-name: x}}}}}`,
		},
		"the token of a service account": {
			`{kind: Secret, type: kubernetes.io/service-account-token, data: {token: dA==}, metadata: {annotations: {kubernetes.io/service-account.uid: u, kubernetes.io/service-account.name: n}}}`,
			`{kind: Secret, type: kubernetes.io/service-account-token, data: null, metadata: {annotations: {kubernetes.io/service-account.name: n}}}`,
		},
		"other secrets stay": {
			`{kind: Secret, type: Opaque, data: {token: dA==}, metadata: {annotations: {kubernetes.io/service-account.uid: u}}}`,
			`{kind: Secret, type: Opaque, data: {token: dA==}, metadata: {annotations: {kubernetes.io/service-account.uid: u}}}`,
		},
		"generated secrets of a ServiceAccount": {
			`{kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: sa-token-x1}, {name: mine}, {name: sb-token-x1}]}`,
			`{kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: mine}, {name: sb-token-x1}]}`,
		},
		"a ServiceAccount with nothing but generated secrets": {
			`{kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: sa-token-x1}]}`, `{kind: ServiceAccount, metadata: {name: sa}}`,
		},
		"allocated addresses of a Service": {
			`{kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP}}`,
			`{kind: Service, metadata: {name: s}, spec: {type: ClusterIP}}`,
		},
		"a headless Service stays headless": {
			`{kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"the node chosen for a volume claim": {
			`{kind: PersistentVolumeClaim, metadata: {name: p, annotations: {volume.kubernetes.io/selected-node: n, a: b}}}`,
			`{kind: PersistentVolumeClaim, metadata: {name: p, annotations: {a: b}}}`,
		},
		"fields with unexpected types": {
			`{kind: Job, metadata: {name: x}, spec: {selector: text, template: [1]}}`, `{kind: Job, metadata: {name: x}, spec: {selector: text, template: [1]}}`,
		},
	}
}

func TestPrune(t *testing.T) {
	for name, tc := range pruneCases() {
		t.Run(name, func(t *testing.T) {
			got := parseObject(t, tc.in)
			Prune(got)
			if diff := cmp.Diff(parseObject(t, tc.want), got); diff != "" {
				t.Errorf("pruned (-want +got):\n%s", diff)
			}
		})
	}
}

// drawnFields returns a generator of JSON objects that contain fields that Prune handles.
func drawnFields() *rapid.Generator[map[string]any] {
	names := rapid.SampledFrom([]string{
		"metadata", "spec", "template", "labels", "annotations", "selector", "matchLabels", "secrets", "name", "type", "data",
		"clusterIP", "clusterIPs", "controller-uid", "job-name", "uid", "status", "manualSelector", "deployment.kubernetes.io/revision",
	})
	leaf := rapid.OneOf(
		rapid.Just[any]("None"), rapid.Just[any](true), rapid.Just[any](int64(1)), rapid.Just[any](nil),
		rapid.Just[any]("kubernetes.io/service-account-token"), rapid.Just[any]([]any{map[string]any{"name": "x-token-1"}}),
	)
	node := leaf
	for range 3 {
		inner := rapid.MapOfN(names, node, 0, 5)
		node = rapid.OneOf(leaf, rapid.Map(inner, func(m map[string]any) any { return m }))
	}
	return rapid.MapOfN(names, node, 0, 6)
}

func drawnObject() *rapid.Generator[*unstructured.Unstructured] {
	kinds := rapid.SampledFrom([]string{"Deployment", "Job", "Secret", "ServiceAccount", "Service", "PersistentVolumeClaim", "X"})
	return rapid.Custom(func(t *rapid.T) *unstructured.Unstructured {
		content := drawnFields().Draw(t, "content")
		content["kind"] = kinds.Draw(t, "kind")
		return &unstructured.Unstructured{Object: content}
	})
}

func TestPruneIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := drawnObject().Draw(t, "object").DeepCopy()
		before := PrunedHash(once)
		Prune(once)
		twice := once.DeepCopy()
		Prune(twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("the second time removes fields: %s", diff)
		}
		if after := PrunedHash(once); after != before {
			t.Fatalf("the hash changed from %d to %d", before, after)
		}
	})
}

func TestPrunedHash(t *testing.T) {
	observed := parseObject(t, deployment)
	hash := PrunedHash(observed)
	if hash != PrunedHash(parseObject(t, deployment)) {
		t.Error("equal objects have different hashes")
	}
	touched := observed.DeepCopy()
	touched.SetResourceVersion("13")
	touched.SetFinalizers(nil)
	touched.Object["status"] = map[string]any{"replicas": int64(1)}
	if PrunedHash(touched) != hash {
		t.Error("status and server-owned fields change the hash")
	}
	if err := unstructured.SetNestedField(touched.Object, int64(6), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if PrunedHash(touched) == hash {
		t.Error("a change of the spec does not change the hash")
	}
	if diff := cmp.Diff(parseObject(t, deployment), observed); diff != "" {
		t.Errorf("hashing changed the object: %s", diff)
	}
}
