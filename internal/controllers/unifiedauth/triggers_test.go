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

// asUnstructured returns the object as an unstructured object, which is the form in which the cache
// contains objects.
func asUnstructured(t *testing.T, kind schema.GroupVersionKind, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(kind)
	return result
}

func TestRoleChangesThatCausePasses(t *testing.T) {
	granting, narrowed, other := newProxyRole("r"), newProxyRole("r"), newOtherRole("r")
	narrowed.Rules[0].ResourceNames = []string{"m1"}
	labelled := newProxyRole("r")
	labelled.Labels = map[string]string{"a": "b"}
	more := newOtherRole("r")
	more.Rules[0].Resources = append(more.Rules[0].Resources, "nodes")
	tests := map[string]struct {
		older, newer *rbacv1.ClusterRole
		want         bool
	}{
		"an added rule":                     {other, granting, true},
		"a removed rule":                    {granting, other, true},
		"no rules":                          {granting, &rbacv1.ClusterRole{}, true},
		"a restriction to some clusters":    {granting, narrowed, true},
		"a label":                           {granting, labelled, false},
		"a role without access to clusters": {other, more, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: asUnstructured(t, clusterRoles, test.older), ObjectNew: asUnstructured(t, clusterRoles, test.newer)}
			if got := onlyAccessRoleChanges().Update(e); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	for role, want := range map[*rbacv1.ClusterRole]bool{granting: true, other: false} {
		object := asUnstructured(t, clusterRoles, role)
		if got := onlyAccessRoleChanges().Create(event.CreateEvent{Object: object}); got != want {
			t.Errorf("created: %v, want %v", got, want)
		}
		if onlyAccessRoleChanges().Create(event.CreateEvent{Object: object, IsInInitialList: true}) {
			t.Error("an object of the initial list passes")
		}
		if got := onlyAccessRoleChanges().Delete(event.DeleteEvent{Object: object}); got != want {
			t.Errorf("deleted: %v, want %v", got, want)
		}
	}
}

func TestRoleBindingChangesThatCausePasses(t *testing.T) {
	f := newFixture(t, newProxyRole("proxy"), newOtherRole("other"))
	tests := map[string]struct {
		older, newer   *rbacv1.ClusterRoleBinding
		update, create bool
	}{
		"other subjects":                          {newBinding("proxy", "ann"), newBinding("proxy", "bob"), true, true},
		"the same subjects":                       {newBinding("proxy", "ann"), newBinding("proxy", "ann"), false, true},
		"recreated for a role with access":        {newBinding("other", "ann"), newBinding("proxy", "ann"), true, true},
		"recreated for a role without access":     {newBinding("proxy", "ann"), newBinding("other", "ann"), true, false},
		"other subjects of a role without access": {newBinding("other", "ann"), newBinding("other", "bob"), false, false},
		"other subjects of a missing role":        {newBinding("gone", "ann"), newBinding("gone", "bob"), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			older, newer := asUnstructured(t, clusterRoleBindings, test.older), asUnstructured(t, clusterRoleBindings, test.newer)
			if got := f.onlyAccessBindingChanges().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: newer}); got != test.update {
				t.Errorf("updated: %v", got)
			}
			if got := f.onlyAccessBindingChanges().Create(event.CreateEvent{Object: newer}); got != test.create {
				t.Errorf("created: %v", got)
			}
			if got := f.onlyAccessBindingChanges().Delete(event.DeleteEvent{Object: newer}); got != test.create {
				t.Errorf("deleted: %v", got)
			}
			if f.onlyAccessBindingChanges().Create(event.CreateEvent{Object: newer, IsInInitialList: true}) {
				t.Error("an object of the initial list passes")
			}
		})
	}
}

func TestClusterChangesThatCausePasses(t *testing.T) {
	withoutImpersonator, moved, labelled := newCluster(), newCluster(), newCluster()
	withoutImpersonator.Spec.ImpersonatorSecretRef = nil
	moved.Spec.ImpersonatorSecretRef.Namespace = "elsewhere"
	labelled.Labels = map[string]string{"a": "b"}
	tests := map[string]struct {
		older, newer *clusterv1alpha1.Cluster
		want         bool
	}{
		"an added impersonator":                {withoutImpersonator, newCluster(), true},
		"an impersonator in another namespace": {newCluster(), moved, true},
		"a label":                              {newCluster(), labelled, false},
		"no change":                            {newCluster(), newCluster(), false},
		"a removed impersonator":               {newCluster(), withoutImpersonator, true},
		"no impersonator":                      {withoutImpersonator, withoutImpersonator, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := onlyImpersonatorChanges().Update(event.UpdateEvent{ObjectOld: test.older, ObjectNew: test.newer}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestObjectsEnqueueTheirClusters(t *testing.T) {
	named := func(namespace, name string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Namespace, w.Name = namespace, name
		return w
	}
	executionNamespace, plain := newExecutionNamespace(), newExecutionNamespace()
	plain.Name = "shop"
	f := newFixture(t, newCluster())
	tests := map[string]struct {
		got  int
		want int
	}{
		"RBAC objects enqueue all clusters": {len(f.requestsForAllClusters(t.Context(), nil)), 1},
		"an execution namespace":            {len(requestForNamespace(t.Context(), executionNamespace)), 1},
		"another namespace":                 {len(requestForNamespace(t.Context(), plain)), 0},
		"the Work of the role":              {len(requestForWork(named("karmada-es-m1", roleWork))), 1},
		"the Work of the role binding":      {len(requestForWork(named("karmada-es-m1", bindingWork))), 1},
		"another Work":                      {len(requestForWork(named("karmada-es-m1", "web-1"))), 0},
		"a Work in another namespace":       {len(requestForWork(named("shop", roleWork))), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%d clusters, want %d", test.got, test.want)
			}
		})
	}
}
