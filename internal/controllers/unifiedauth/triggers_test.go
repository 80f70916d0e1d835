package unifiedauth

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// seen is an object as the cache holds it.
func seen(t *testing.T, kind schema.GroupVersionKind, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(kind)
	return result
}

func TestChangesOfRolesThatCount(t *testing.T) {
	granting, narrowed, other := proxyRole("r"), proxyRole("r"), otherRole("r")
	narrowed.Rules[0].ResourceNames = []string{"m1"}
	labelled := proxyRole("r")
	labelled.Labels = map[string]string{"a": "b"}
	more := otherRole("r")
	more.Rules[0].Resources = append(more.Rules[0].Resources, "nodes")
	tests := map[string]struct {
		older, newer *rbacv1.ClusterRole
		want         bool
	}{
		"gaining the rule":           {other, granting, true},
		"losing the rule":            {granting, other, true},
		"losing all rules":           {granting, &rbacv1.ClusterRole{}, true},
		"naming clusters":            {granting, narrowed, true},
		"a label":                    {granting, labelled, false},
		"other rules of other roles": {other, more, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: seen(t, clusterRoles, test.older), ObjectNew: seen(t, clusterRoles, test.newer)}
			if got := ruled().Update(e); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	for role, want := range map[*rbacv1.ClusterRole]bool{granting: true, other: false} {
		object := seen(t, clusterRoles, role)
		if got := ruled().Create(event.CreateEvent{Object: object}); got != want {
			t.Errorf("created: %v, want %v", got, want)
		}
		if ruled().Create(event.CreateEvent{Object: object, IsInInitialList: true}) {
			t.Error("one that was there before counts")
		}
		if got := ruled().Delete(event.DeleteEvent{Object: object}); got != want {
			t.Errorf("deleted: %v, want %v", got, want)
		}
	}
}

func TestChangesOfBindingsThatCount(t *testing.T) {
	w := newWorld(t, proxyRole("proxy"), otherRole("other"))
	tests := map[string]struct {
		older, newer *rbacv1.ClusterRoleBinding
		update, come bool
	}{
		"other subjects":                       {binding("proxy", "ann"), binding("proxy", "bob"), true, true},
		"the same subjects":                    {binding("proxy", "ann"), binding("proxy", "ann"), false, true},
		"made again for a role that counts":    {binding("other", "ann"), binding("proxy", "ann"), true, true},
		"made again for a role that does not":  {binding("proxy", "ann"), binding("other", "ann"), true, false},
		"other subjects of another role":       {binding("other", "ann"), binding("other", "bob"), false, false},
		"other subjects of a role that is not": {binding("gone", "ann"), binding("gone", "bob"), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			older, newer := seen(t, clusterRoleBindings, test.older), seen(t, clusterRoleBindings, test.newer)
			if got := w.bound().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: newer}); got != test.update {
				t.Errorf("updated: %v", got)
			}
			if got := w.bound().Create(event.CreateEvent{Object: newer}); got != test.come {
				t.Errorf("created: %v", got)
			}
			if got := w.bound().Delete(event.DeleteEvent{Object: newer}); got != test.come {
				t.Errorf("deleted: %v", got)
			}
			if w.bound().Create(event.CreateEvent{Object: newer, IsInInitialList: true}) {
				t.Error("one that was there before counts")
			}
		})
	}
}

func TestChangesOfClustersThatCount(t *testing.T) {
	plain, moved, labelled := cluster(), cluster(), cluster()
	plain.Spec.ImpersonatorSecretRef = nil
	moved.Spec.ImpersonatorSecretRef.Namespace = "elsewhere"
	labelled.Labels = map[string]string{"a": "b"}
	tests := map[string]struct {
		older, newer *clusterv1alpha1.Cluster
		want         bool
	}{
		"an impersonator at last":    {plain, cluster(), true},
		"an impersonator elsewhere":  {cluster(), moved, true},
		"a label":                    {cluster(), labelled, false},
		"nothing":                    {cluster(), cluster(), false},
		"no impersonator after all":  {cluster(), plain, true},
		"still without impersonator": {plain, plain, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := referenced().Update(event.UpdateEvent{ObjectOld: test.older, ObjectNew: test.newer}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWhichClusterIsAskedFor(t *testing.T) {
	named := func(namespace, name string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Namespace, w.Name = namespace, name
		return w
	}
	space, plain := space(), space()
	plain.Name = "shop"
	w := newWorld(t, cluster())
	tests := map[string]struct {
		got  int
		want int
	}{
		"all, for RBAC":                      {len(w.everyCluster(t.Context(), nil)), 1},
		"that of an execution namespace":     {len(clusterOfSpace(t.Context(), space)), 1},
		"none of another namespace":          {len(clusterOfSpace(t.Context(), plain)), 0},
		"that of the role's Work":            {len(clusterOfWork(named("karmada-es-m1", roleWork))), 1},
		"that of the binding's Work":         {len(clusterOfWork(named("karmada-es-m1", bindingWork))), 1},
		"none of another Work":               {len(clusterOfWork(named("karmada-es-m1", "web-1"))), 0},
		"none of a Work in a namespace else": {len(clusterOfWork(named("shop", roleWork))), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%d clusters, want %d", test.got, test.want)
			}
		})
	}
}
