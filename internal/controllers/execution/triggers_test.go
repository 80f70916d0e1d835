package execution

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(change func(map[string]any)) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "generation": int64(3),
			"labels": map[string]any{"app": "web"},
			"annotations": map[string]any{
				"resourcetemplate.karmada.io/managed-labels":      "app",
				"resourcetemplate.karmada.io/managed-annotations": "owner",
				"owner": "team-a",
			},
		},
		"spec":   map[string]any{"replicas": int64(2)},
		"status": map[string]any{"replicas": int64(2)},
	}
	change(content)
	return &unstructured.Unstructured{Object: content}
}

func metadata(content map[string]any) map[string]any { return content["metadata"].(map[string]any) }

func TestDriftedTellsChangesByOthersFromTheMembersOwnBusiness(t *testing.T) {
	withoutGeneration := func(change func(map[string]any)) *unstructured.Unstructured {
		return object(func(content map[string]any) {
			delete(metadata(content), "generation")
			change(content)
		})
	}
	none := func(map[string]any) {}
	cases := map[string]struct {
		before, after *unstructured.Unstructured
		want          bool
	}{
		"a status is the member's business": {
			object(none), object(func(c map[string]any) { c["status"] = map[string]any{"replicas": int64(1)} }), false},
		"an annotation of a member controller is the member's business": {
			object(none), object(func(c map[string]any) {
				metadata(c)["annotations"].(map[string]any)["deployment.kubernetes.io/revision"] = "1"
			}), false},
		"another generation is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["generation"] = int64(4) }), true},
		"a label of the template that changed is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["labels"] = map[string]any{"app": "other"} }), true},
		"a label of the template that is gone is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["labels"] = map[string]any{} }), true},
		"an annotation of the template that changed is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["annotations"].(map[string]any)["owner"] = "team-b" }), true},
		"content of a kind without generations that changed is drift": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} }), true},
		"content of a kind without generations that stays is none": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { metadata(c)["resourceVersion"] = "7" }), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := drifted(tc.before, tc.after); got != tc.want {
				t.Errorf("drifted = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLedgerHoldsOnlyWhatWasAppliedAndIsStillThere(t *testing.T) {
	none := func(map[string]any) {}
	key := objectKey{}
	manifest, observed := object(none), object(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(2), "paused": false} })
	l := newLedger()
	if l.holds(key, manifest, observed) {
		t.Error("an empty ledger holds something")
	}
	l.remember(key, manifest, observed)
	if !l.holds(key, manifest, observed) {
		t.Error("what was applied is not held")
	}
	if l.holds(key, observed, observed) {
		t.Error("another manifest is held")
	}
	if l.holds(key, manifest, manifest) {
		t.Error("a changed member object is held")
	}
	statusOnly := observed.DeepCopy()
	statusOnly.Object["status"] = map[string]any{"replicas": int64(0)}
	if !l.holds(key, manifest, statusOnly) {
		t.Error("a change of the status counts as drift")
	}
	l.forget(key.work)
	if l.holds(key, manifest, observed) {
		t.Error("what was forgotten is held")
	}
}
