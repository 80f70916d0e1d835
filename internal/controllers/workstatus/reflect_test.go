package workstatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
)

// fixedRules returns the same rules for all kinds.
type fixedRules struct{ rules interpreter.Rules }

func (f fixedRules) Rules(schema.GroupVersionKind) interpreter.Rules { return f.rules }

func TestInterpretHealth(t *testing.T) {
	answering := func(healthy bool, err error) interpreter.Rules {
		return interpreter.Rules{IsHealthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return healthy, err }}
	}
	observed := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
	}}
	failureEvent := "Warning InterpretHealthFailed interpreting the health of Deployment shop/web: status.replicas is x, not an integer"
	for name, tc := range map[string]struct {
		rules  interpreter.Rules
		want   workv1alpha1.ResourceHealth
		events []string
	}{
		"a kind without a health rule is healthy": {interpreter.Rules{}, workv1alpha1.ResourceHealthy, nil},
		"a healthy object":                        {answering(true, nil), workv1alpha1.ResourceHealthy, nil},
		"an unhealthy object":                     {answering(false, nil), workv1alpha1.ResourceUnhealthy, nil},
		"an error of the rule is recorded once": {
			answering(true, errors.New("status.replicas is x, not an integer")), workv1alpha1.ResourceUnknown, []string{failureEvent}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			c := &controller{rules: fixedRules{tc.rules}, events: loop.NewEvents(recorder)}
			karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: "work"}}
			for range 2 {
				got, err := c.interpretHealth(t.Context(), karmadaWork, observed)
				if got != tc.want || (err != nil) != (tc.want == workv1alpha1.ResourceUnknown) {
					t.Errorf("health = %s, %v, want %s", got, err, tc.want)
				}
			}
			close(recorder.Events)
			var events []string
			for event := range recorder.Events {
				events = append(events, event)
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// newManifests returns manifests of ConfigMaps with these names.
func newManifests(t *testing.T, names ...string) []workv1alpha1.Manifest {
	t.Helper()
	var list []workv1alpha1.Manifest
	for _, name := range names {
		raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return list
}

func newIdentifier(ordinal int, name string) workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{Ordinal: ordinal, Version: "v1", Kind: "ConfigMap", Name: name}
}

func newReflection(ordinal int, name string, health workv1alpha1.ResourceHealth) reflection {
	id := newIdentifier(ordinal, name)
	return reflection{identifier: id, status: &workv1alpha1.ManifestStatus{Identifier: id, Health: health}}
}

func TestMergeReflections(t *testing.T) {
	for name, tc := range map[string]struct {
		stored []reflection
		now    []reflection
		want   []string
	}{
		"the first status": {nil, []reflection{newReflection(1, "b", "Healthy")}, []string{"1 b Healthy"}},
		"statuses in the order of the manifests": {
			[]reflection{newReflection(1, "b", "Healthy")}, []reflection{newReflection(2, "c", "Unknown"), newReflection(0, "a", "Healthy")},
			[]string{"0 a Healthy", "1 b Healthy", "2 c Unknown"}},
		"a newer status replaces the older one": {
			[]reflection{newReflection(0, "a", "Unhealthy"), newReflection(1, "b", "Healthy")}, []reflection{newReflection(0, "a", "Healthy")},
			[]string{"0 a Healthy", "1 b Healthy"}},
		"the status of a deleted object is removed": {
			[]reflection{newReflection(0, "a", "Healthy"), newReflection(1, "b", "Healthy")}, []reflection{{identifier: newIdentifier(0, "a"), isDeleted: true}},
			[]string{"1 b Healthy"}},
		"an object of unknown state keeps its status": {
			[]reflection{newReflection(0, "a", "Healthy")}, []reflection{{identifier: newIdentifier(0, "a")}}, []string{"0 a Healthy"}},
		"a status without a manifest is removed": {
			[]reflection{newReflection(3, "old", "Healthy")}, []reflection{newReflection(0, "a", "Healthy")}, []string{"0 a Healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			current := newManifests(t, "a", "b", "c")
			var merged []workv1alpha1.ManifestStatus
			for _, each := range tc.stored {
				merged = append(merged, *each.status)
			}
			for _, each := range tc.now {
				merged = each.mergeInto(merged, current)
			}
			var got []string
			for _, status := range merged {
				got = append(got, fmt.Sprintf("%d %s %s", status.Identifier.Ordinal, status.Identifier.Name, status.Health))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("manifest statuses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportedState(t *testing.T) {
	absent := reflection{isDeleted: true}
	for name, tc := range map[string]struct {
		reflections []reflection
		want        loop.StatusState
	}{
		"healthy objects":      {[]reflection{newReflection(0, "a", "Healthy"), newReflection(1, "b", "Healthy")}, loop.StatusSettled},
		"one unhealthy object": {[]reflection{newReflection(0, "a", "Healthy"), newReflection(1, "b", "Unhealthy")}, loop.StatusInProgress},
		"a deleted object":     {[]reflection{absent}, loop.StatusSettled},
		"no reflection":        {nil, loop.StatusSettled},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reportedState(tc.reflections); got != tc.want {
				t.Errorf("state %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNamesSameWork(t *testing.T) {
	annotated := func(namespace, name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetAnnotations(map[string]string{
			workv1alpha1.WorkNamespaceAnnotation: namespace, workv1alpha1.WorkNameAnnotation: name,
		})
		return object
	}
	manifest := annotated("karmada-es-m1", "web")
	for name, tc := range map[string]struct {
		observed *unstructured.Unstructured
		want     bool
	}{
		"the same Work":               {annotated("karmada-es-m1", "web"), true},
		"another Work":                {annotated("karmada-es-m1", "other"), false},
		"a Work of another namespace": {annotated("karmada-es-m2", "web"), false},
		"no Work":                     {&unstructured.Unstructured{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := namesSameWork(tc.observed, manifest); got != tc.want {
				t.Errorf("sameWork = %v, want %v", got, tc.want)
			}
		})
	}
}

// The status of a finished Job proves that it was executed, also after the Job is deleted.
func TestStatusOfDeletedFinishedJobIsKept(t *testing.T) {
	job := workv1alpha1.ResourceIdentifier{Group: "batch", Version: "v1", Kind: "Job", Namespace: "shop", Name: "import"}
	stored := []workv1alpha1.ManifestStatus{{Identifier: job, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)}}}
	if kept := (reflection{identifier: job, isDeleted: true}).mergeInto(stored, nil); len(kept) != 1 {
		t.Errorf("statuses %v", kept)
	}
	stored[0].Status.Raw = []byte(`{"active":1}`)
	if kept := (reflection{identifier: job, isDeleted: true}).mergeInto(stored, nil); len(kept) != 0 {
		t.Errorf("the status of a deleted running Job is kept: %v", kept)
	}
}
