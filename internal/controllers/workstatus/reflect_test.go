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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/interpreter"
)

// rules answer for all kinds alike.
type rules struct{ offered interpreter.Rules }

func (r rules) Rules(schema.GroupVersionKind) interpreter.Rules { return r.offered }

func TestHealth(t *testing.T) {
	answering := func(healthy bool, err error) interpreter.Rules {
		return interpreter.Rules{Healthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return healthy, err }}
	}
	observed := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
	}}
	told := "Warning InterpretHealthFailed judging health of Deployment shop/web: status.replicas is x, not an integer"
	for name, tc := range map[string]struct {
		rules interpreter.Rules
		want  workv1alpha1.ResourceHealth
		told  []string
	}{
		"a kind that nobody can judge is healthy once it is there": {interpreter.Rules{}, workv1alpha1.ResourceHealthy, nil},
		"an object that works":         {answering(true, nil), workv1alpha1.ResourceHealthy, nil},
		"an object that does not work": {answering(false, nil), workv1alpha1.ResourceUnhealthy, nil},
		"of one that cannot be judged that is told, but only once": {
			answering(true, errors.New("status.replicas is x, not an integer")), workv1alpha1.ResourceUnknown, []string{told}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			c := &controller{rules: rules{tc.rules}, events: observe.NewEvents(recorder)}
			of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: "work"}}
			for range 2 {
				if got := c.health(t.Context(), of, observed); got != tc.want {
					t.Errorf("health = %s, want %s", got, tc.want)
				}
			}
			close(recorder.Events)
			var events []string
			for event := range recorder.Events {
				events = append(events, event)
			}
			if diff := cmp.Diff(tc.told, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// manifests are ConfigMaps of these names.
func manifests(t *testing.T, names ...string) []workv1alpha1.Manifest {
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

func identifier(ordinal int, name string) workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{Ordinal: ordinal, Version: "v1", Kind: "ConfigMap", Name: name}
}

func seen(ordinal int, name string, health workv1alpha1.ResourceHealth) reflection {
	id := identifier(ordinal, name)
	return reflection{identifier: id, entry: &workv1alpha1.ManifestStatus{Identifier: id, Health: health}}
}

func TestReflectionsOfOneWorkKeepOutOfEachOthersWay(t *testing.T) {
	for name, tc := range map[string]struct {
		stored []reflection
		now    []reflection
		want   []string
	}{
		"the first that is seen": {nil, []reflection{seen(1, "b", "Healthy")}, []string{"1 b Healthy"}},
		"all of them, in the order of the manifests": {
			[]reflection{seen(1, "b", "Healthy")}, []reflection{seen(2, "c", "Unknown"), seen(0, "a", "Healthy")},
			[]string{"0 a Healthy", "1 b Healthy", "2 c Unknown"}},
		"a newer state takes the place of the older": {
			[]reflection{seen(0, "a", "Unhealthy"), seen(1, "b", "Healthy")}, []reflection{seen(0, "a", "Healthy")},
			[]string{"0 a Healthy", "1 b Healthy"}},
		"an object that is gone has no status": {
			[]reflection{seen(0, "a", "Healthy"), seen(1, "b", "Healthy")}, []reflection{{identifier: identifier(0, "a"), gone: true}},
			[]string{"1 b Healthy"}},
		"of an object that cannot be told to be ours nothing new is said": {
			[]reflection{seen(0, "a", "Healthy")}, []reflection{{identifier: identifier(0, "a")}}, []string{"0 a Healthy"}},
		"what the Work does not hold any more goes": {
			[]reflection{seen(3, "old", "Healthy")}, []reflection{seen(0, "a", "Healthy")}, []string{"0 a Healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			held := manifests(t, "a", "b", "c")
			var merged []workv1alpha1.ManifestStatus
			for _, each := range tc.stored {
				merged = append(merged, *each.entry)
			}
			for _, each := range tc.now {
				merged = each.mergeInto(merged, held)
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

func TestOnlyWhatHasArrivedHurries(t *testing.T) {
	gone := reflection{gone: true}
	for name, tc := range map[string]struct {
		seen []reflection
		want report.Pace
	}{
		"all are healthy":       {[]reflection{seen(0, "a", "Healthy"), seen(1, "b", "Healthy")}, report.Soon},
		"one is on its way":     {[]reflection{seen(0, "a", "Healthy"), seen(1, "b", "Unhealthy")}, report.Later},
		"an object is gone":     {[]reflection{gone}, report.Soon},
		"there is nothing else": {nil, report.Soon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := paceOf(tc.seen); got != tc.want {
				t.Errorf("pace = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAnObjectIsOfTheWorkThatItNames(t *testing.T) {
	marked := func(namespace, name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetAnnotations(map[string]string{
			workv1alpha1.WorkNamespaceAnnotation: namespace, workv1alpha1.WorkNameAnnotation: name,
		})
		return object
	}
	manifest := marked("karmada-es-m1", "web")
	for name, tc := range map[string]struct {
		observed *unstructured.Unstructured
		want     bool
	}{
		"the same Work":           {marked("karmada-es-m1", "web"), true},
		"another Work":            {marked("karmada-es-m1", "other"), false},
		"a Work of another place": {marked("karmada-es-m2", "web"), false},
		"no Work":                 {&unstructured.Unstructured{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameWork(tc.observed, manifest); got != tc.want {
				t.Errorf("sameWork = %v, want %v", got, tc.want)
			}
		})
	}
}
