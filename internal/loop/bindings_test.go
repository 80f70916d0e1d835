package loop

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"karmada.io/karmada/api"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

var errUnavailable = errors.New("the control plane is unavailable")

// newBinding returns a binding in m1 that is evicted from m2, unless a change sets other clusters.
func newBinding(namespaced bool, name string, changes ...func(binding.Object)) binding.Object {
	bound := binding.New(namespaced)
	bound.SetName(name)
	if namespaced {
		bound.SetNamespace("shop")
	}
	bound.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	bound.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
	for _, change := range changes {
		change(bound)
	}
	return bound
}

func inDeletion(bound binding.Object) {
	bound.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)})
	bound.SetFinalizers([]string{"example.io/wait"})
}

func inOtherClusters(bound binding.Object) {
	bound.BindingSpec().Clusters[0].Name, bound.BindingSpec().GracefulEvictionTasks[0].FromCluster = "m3", "m4"
}

func newBindingStore(t *testing.T, answer error, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			return cmp.Or(answer, c.Get(ctx, key, object, o...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return cmp.Or(answer, c.List(ctx, list, o...))
		},
	})
	for _, index := range []Index{BindingsByCluster, WorksByBindingID} {
		for _, object := range index.Types {
			builder.WithIndex(object, index.Name, index.Keys)
		}
	}
	return builder.Build()
}

func TestGetActive(t *testing.T) {
	tests := map[string]struct {
		stored     []client.Object
		namespaced bool
		answer     error
		found      bool
	}{
		"a ResourceBinding":        {stored: []client.Object{newBinding(true, "web")}, namespaced: true, found: true},
		"a ClusterResourceBinding": {stored: []client.Object{newBinding(false, "web")}, found: true},
		"only the other scope":     {stored: []client.Object{newBinding(true, "web")}},
		"none":                     {namespaced: true},
		"in deletion":              {stored: []client.Object{newBinding(true, "web", inDeletion)}, namespaced: true},
		"an existing binding that cannot be read": {stored: []client.Object{newBinding(true, "web")}, namespaced: true, answer: errUnavailable},
		"a missing binding that cannot be read":   {namespaced: true, answer: errUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := types.NamespacedName{Name: "web"}
			if test.namespaced {
				key.Namespace = "shop"
			}
			got, err := GetActiveBinding(t.Context(), newBindingStore(t, test.answer, test.stored...), test.namespaced, key)
			if !errors.Is(err, test.answer) || (got != nil) != test.found {
				t.Errorf("got %v and error %v, want one: %t, and error %v", got, err, test.found, test.answer)
			}
		})
	}
}

func TestBindingsInCluster(t *testing.T) {
	stored := []client.Object{newBinding(true, "web"), newBinding(true, "off", inOtherClusters), newBinding(true, "last", inDeletion), newBinding(false, "wide")}
	twice := newBinding(true, "twice")
	twice.BindingSpec().GracefulEvictionTasks[0].FromCluster = "m1"
	tests := map[string]struct {
		namespaced bool
		cluster    string
		want       []string
	}{
		"scheduled to the cluster": {true, "m1", []string{"last", "twice", "web"}},
		"evicted from the cluster": {true, "m2", []string{"last", "web"}},
		"cluster-scoped bindings":  {false, "m1", []string{"wide"}},
		"none":                     {false, "m4", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := ListBindingsInCluster(t.Context(), newBindingStore(t, nil, append(stored, twice)...), test.namespaced, test.cluster)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, bound := range found {
				names = append(names, bound.GetName())
			}
			if diff := gocmp.Diff(test.want, names); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindingsInClusterError(t *testing.T) {
	if found, err := ListBindingsInCluster(t.Context(), newBindingStore(t, errUnavailable, newBinding(true, "web")), true, "m1"); !errors.Is(err, errUnavailable) || found != nil {
		t.Errorf("got %v and error %v, want %v", found, err, errUnavailable)
	}
}

func TestOldOrNewMatches(t *testing.T) {
	leaving := newBinding(true, "web")
	stays := newBinding(true, "web", func(bound binding.Object) { bound.BindingSpec().GracefulEvictionTasks = nil })
	passes := OnlyMatchingBindings(func(bound binding.Object) bool { return len(bound.BindingSpec().GracefulEvictionTasks) > 0 })
	tests := map[string]struct {
		before, after client.Object
		want          bool
	}{
		"matches before and after":          {leaving, leaving, true},
		"matches after":                     {stays, leaving, true},
		"matches before":                    {leaving, stays, true},
		"matches never":                     {stays, stays, false},
		"not a binding":                     {&corev1.Pod{}, &corev1.Pod{}, false},
		"a new binding that matches":        {nil, leaving, true},
		"a new binding that does not match": {nil, stays, false},
		"a deleted binding that matched":    {leaving, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got bool
			switch {
			case test.before == nil:
				got = passes.Create(event.CreateEvent{Object: test.after})
			case test.after == nil:
				got = passes.Delete(event.DeleteEvent{Object: test.before})
			default:
				got = passes.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})
			}
			if got != test.want {
				t.Errorf("passes: %t", got)
			}
		})
	}
}
