package work

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestVerifyWorksComplete(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	made := func(ago time.Duration, change func(*corev1.Namespace)) *corev1.Namespace {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-ago))}}
		change(space)
		return space
	}
	same := func(*corev1.Namespace) {}
	tests := map[string]struct {
		space *corev1.Namespace
		want  string
	}{
		"old":                   {made(time.Hour, same), ""},
		"missing":               {nil, "does not exist"},
		"just created again":    {made(time.Minute, same), "was created"},
		"created in the future": {made(-time.Hour, same), "was created"},
		"without creation time": {&corev1.Namespace{}, "was created"},
		"old, being deleted": {made(time.Hour, func(n *corev1.Namespace) {
			n.DeletionTimestamp = &metav1.Time{Time: now}
		}), "is being deleted"},
		"old, terminating": {made(time.Hour, func(n *corev1.Namespace) {
			n.Status.Phase = corev1.NamespaceTerminating
		}), "is being deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := VerifyWorksComplete("karmada-es-m1", test.space, now)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestExpectedObjects(t *testing.T) {
	spec := func(change func(*workv1alpha2.ResourceBindingSpec)) *workv1alpha2.ResourceBindingSpec {
		of := &workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-one"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}},
		}
		change(of)
		return of
	}
	same := func(*workv1alpha2.ResourceBindingSpec) {}
	object := func(name, id string) *unstructured.Unstructured {
		return labelledObject(name, id, "web-1", "karmada-es-m1")
	}
	tests := map[string]struct {
		spec   *workv1alpha2.ResourceBindingSpec
		object *unstructured.Unstructured
		want   bool
	}{
		"created from the template":                     {spec(same), object("web", "one"), true},
		"renamed by an override":                        {spec(same), object("web-blue", "one"), true},
		"created from an earlier template of that name": {spec(same), object("web", "zero"), true},
		"created from another template":                 {spec(same), object("api", "two"), false},
		"the binding targets other clusters": {spec(func(s *workv1alpha2.ResourceBindingSpec) {
			s.Clusters[0].Name = "m2"
		}), object("web", "one"), false},
		"a dependency": {spec(func(s *workv1alpha2.ResourceBindingSpec) {
			s.Clusters, s.RequiredBy = nil, []workv1alpha2.BindingSnapshot{{Clusters: s.Clusters}}
		}), object("web", "one"), true},
		"evicted gracefully": {spec(func(s *workv1alpha2.ResourceBindingSpec) {
			s.Clusters = nil
			s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		}), object("web", "one"), true},
		"neither has a UID": {spec(func(s *workv1alpha2.ResourceBindingSpec) { s.Resource.UID = "" }), func() *unstructured.Unstructured {
			unnamed := object("api", "two")
			unnamed.SetAnnotations(nil)
			return unnamed
		}(), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			awaited := NewExpectedObjects("m1")
			awaited.AddBinding(test.spec)
			if got := awaited.Has("m1", test.object); got != test.want {
				t.Errorf("expected: %v, want %v", got, test.want)
			}
			if awaited.Has("m2", test.object) {
				t.Error("expected in a cluster that was not requested")
			}
		})
	}
}

func TestDeletionCascades(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "Namespace"}: true, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
		{Kind: "ConfigMap"}: false, {Group: "example.org", Kind: "Namespace"}: false,
	} {
		if got := DeletionCascades(kind); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}
