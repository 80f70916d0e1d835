package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func setFullSpec(p Object) {
	*p.PropagationSpec() = policyv1alpha1.PropagationSpec{
		ResourceSelectors:           []policyv1alpha1.ResourceSelector{webByName},
		PropagateDeps:               true,
		SchedulerName:               "default-scheduler",
		ConflictResolution:          policyv1alpha1.ConflictAbort,
		PreserveResourcesOnDeletion: new(true),
		Failover:                    &policyv1alpha1.FailoverBehavior{},
		Suspension:                  &policyv1alpha1.Suspension{Dispatching: new(true)},
		Placement: policyv1alpha1.Placement{
			ClusterAffinity:  &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}},
			WorkloadAffinity: &policyv1alpha1.WorkloadAffinity{Affinity: &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"}},
		},
	}
}

func fullInput(policy Object) BindingInput {
	return BindingInput{
		Template:         newDeployment("shop", "web", map[string]string{"app": "web"}),
		Policy:           policy,
		Replicas:         2,
		Requirements:     &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		SchedulePriority: new(int32(7)),
		WorkloadAffinity: true,
	}
}

func wantSpec() workv1alpha2.ResourceBindingSpec {
	p := newPolicy("shop", "web", setFullSpec).PropagationSpec()
	return workv1alpha2.ResourceBindingSpec{
		Resource:                    workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-1", ResourceVersion: "812"},
		PropagateDeps:               true,
		Replicas:                    2,
		ReplicaRequirements:         &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		SchedulerName:               "default-scheduler",
		Placement:                   &p.Placement,
		Failover:                    p.Failover,
		ConflictResolution:          policyv1alpha1.ConflictAbort,
		PreserveResourcesOnDeletion: new(true),
		Suspension:                  &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}},
		SchedulePriority:            &workv1alpha2.SchedulePriority{Priority: 7},
		WorkloadAffinityGroups:      &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web"},
	}
}

func wantMetadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "web-deployment", Namespace: "shop",
		Labels:          map[string]string{ppID: "id-web"},
		Annotations:     map[string]string{ppNS: "shop", ppName: "web"},
		Finalizers:      []string{"karmada.io/binding-controller"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-1", Controller: new(true), BlockOwnerDeletion: new(true)}},
	}
}

// withoutTemplateState removes policyv1alpha1.TemplateStateAnnotation. Only
// TestBindIgnoresStatusOfTemplate checks this annotation.
func withoutTemplateState(b binding.Object) binding.Object {
	annotations := b.GetAnnotations()
	delete(annotations, policyv1alpha1.TemplateStateAnnotation)
	b.SetAnnotations(annotations)
	return b
}

// newBindingOf returns a binding that has only its name.
func newBindingOf(in BindingInput) binding.Object {
	bound := binding.New(in.Template.GetNamespace() != "")
	bound.SetName(binding.Name(in.Template.GetName(), in.Template.GetKind()))
	return bound
}

func TestBindIgnoresStatusOfTemplate(t *testing.T) {
	in := fullInput(newPolicy("shop", "web", setFullSpec))
	bound := newBindingOf(in)
	if err := UpdateBinding(bound, in); err != nil {
		t.Fatal(err)
	}
	recorded := bound.BindingSpec().Resource.ResourceVersion
	cases := map[string]struct {
		change  func(*unstructured.Unstructured)
		changes bool
	}{
		"the status": {func(template *unstructured.Unstructured) {
			template.Object["status"] = map[string]any{"replicas": int64(2)}
		}, false},
		"a label": {func(template *unstructured.Unstructured) {
			template.SetLabels(map[string]string{"app": "web", "tier": "front"})
		}, true},
		"a recreated template of the same name": {func(template *unstructured.Unstructured) {
			template.SetUID("uid-2")
		}, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			updated, later := bound.DeepCopyObject().(binding.Object), in
			later.Template = in.Template.DeepCopy()
			later.Template.SetResourceVersion("999")
			test.change(later.Template)
			if later.Template.GetUID() != in.Template.GetUID() {
				updated.SetOwnerReferences(nil)
			}
			if err := UpdateBinding(updated, later); err != nil {
				t.Fatal(err)
			}
			if changed := updated.BindingSpec().Resource.ResourceVersion != recorded; changed != test.changes {
				t.Errorf("resourceVersion changed = %v, want %v", changed, test.changes)
			}
		})
	}
}

func TestBindCreatesBinding(t *testing.T) {
	in := fullInput(newPolicy("shop", "web", setFullSpec))
	got := newBindingOf(in)
	if err := UpdateBinding(got, in); err != nil {
		t.Fatal(err)
	}
	want := &workv1alpha2.ResourceBinding{ObjectMeta: wantMetadata(), Spec: wantSpec()}
	if diff := cmp.Diff(binding.Object(want), withoutTemplateState(got)); diff != "" {
		t.Errorf("binding differs (-want +got):\n%s", diff)
	}
}

func TestBindClusterScopedTemplate(t *testing.T) {
	in := fullInput(newPolicy("", "all", setFullSpec))
	in.Template = newObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:foo", map[string]string{"app": "web"})
	got := newBindingOf(in)
	if err := UpdateBinding(got, in); err != nil {
		t.Fatal(err)
	}
	if name := got.GetName(); name != "system.foo-clusterrole" {
		t.Errorf("name = %q", name)
	}
	if diff := cmp.Diff([]string{"karmada.io/cluster-resource-binding-controller"}, got.GetFinalizers()); diff != "" {
		t.Errorf("finalizers differ (-want +got):\n%s", diff)
	}
	if spec := got.BindingSpec(); spec.SchedulePriority != nil || spec.WorkloadAffinityGroups != nil || !spec.PropagateDeps {
		t.Errorf("priority %v, groups %v, propagateDeps %v; want none, none, true", spec.SchedulePriority, spec.WorkloadAffinityGroups, spec.PropagateDeps)
	}
	if diff := cmp.Diff(claimMetadata{map[string]string{cpID: "id-all"}, map[string]string{cpName: "all"}}, claimMetadata{got.GetLabels(), withoutTemplateState(got).GetAnnotations()}); diff != "" {
		t.Errorf("claim differs (-want +got):\n%s", diff)
	}
}

func TestBindUpdates(t *testing.T) {
	tests := map[string]struct {
		before func(*workv1alpha2.ResourceBinding)
		input  func(*BindingInput)
		want   func(*workv1alpha2.ResourceBinding)
	}{
		"no change": {},
		"fields of the scheduler and other writers are kept": {
			before: setFieldsOfOtherWriters,
			want:   setFieldsOfOtherWriters,
		},
		"labels and annotations of other writers are kept": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.Labels["resourcebinding.karmada.io/permanent-id"] = "91aa"
				b.Annotations["policy.karmada.io/applied-placement"] = "{}"
			},
			want: func(b *workv1alpha2.ResourceBinding) {
				b.Labels["resourcebinding.karmada.io/permanent-id"] = "91aa"
				b.Annotations["policy.karmada.io/applied-placement"] = "{}"
			},
		},
		"a claim of a ClusterPropagationPolicy is replaced": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.Labels, b.Annotations = map[string]string{cpID: "id-all"}, map[string]string{cpName: "all"}
			},
		},
		"the finalizer is added to other finalizers": {
			before: func(b *workv1alpha2.ResourceBinding) { b.Finalizers = []string{"x"} },
			want:   func(b *workv1alpha2.ResourceBinding) { b.Finalizers = []string{"x", "karmada.io/binding-controller"} },
		},
		"a binding that is being deleted gets no finalizer": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.Finalizers, b.DeletionTimestamp = []string{"x"}, &metav1.Time{}
			},
			want: func(b *workv1alpha2.ResourceBinding) {
				b.Finalizers, b.DeletionTimestamp = []string{"x"}, &metav1.Time{}
			},
		},
		"owner references are replaced": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{Name: "x", UID: "y"})
			},
		},
		"the same object in another API version keeps the binding": {
			before: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.APIVersion = "extensions/v1beta1" },
		},
		"a binding without owner is adopted": {
			before: func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil },
		},
		"a priority is removed if the policy has none": {
			input: func(in *BindingInput) { in.SchedulePriority = nil },
			want:  func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulePriority = nil },
		},
		"no affinity groups if the feature is disabled": {
			input: func(in *BindingInput) { in.WorkloadAffinity = false },
			want:  func(b *workv1alpha2.ResourceBinding) { b.Spec.WorkloadAffinityGroups = nil },
		},
		"components replace replicas": {
			input: func(in *BindingInput) {
				in.Replicas, in.Requirements, in.Components = 0, nil, []workv1alpha2.Component{{Name: "driver", Replicas: 1}}
			},
			want: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil
				b.Spec.Components = []workv1alpha2.Component{{Name: "driver", Replicas: 1}}
			},
		},
		"the user state is recorded": {
			input: func(in *BindingInput) { in.UserState = "abc" },
			want:  func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.UserStateAnnotation] = "abc" },
		},
		"the user state is removed if the policy is no longer lazy": {
			before: func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.UserStateAnnotation] = "abc" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := fullInput(newPolicy("shop", "web", setFullSpec))
			got := &workv1alpha2.ResourceBinding{ObjectMeta: wantMetadata(), Spec: wantSpec()}
			want := got.DeepCopy()
			for change, object := range map[*func(*workv1alpha2.ResourceBinding)]*workv1alpha2.ResourceBinding{&test.before: got, &test.want: want} {
				if *change != nil {
					(*change)(object)
				}
			}
			if test.input != nil {
				test.input(&in)
			}
			if err := UpdateBinding(got, in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(binding.Object(want), withoutTemplateState(got)); diff != "" {
				t.Errorf("binding differs (-want +got):\n%s", diff)
			}
		})
	}
}

func setFieldsOfOtherWriters(b *workv1alpha2.ResourceBinding) {
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m3"}}
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x"}}
	b.Spec.RescheduleTriggeredAt = &metav1.Time{}
	b.Spec.Suspension.Scheduling = new(false)
	b.Status.SchedulerObservedGeneration = 3
}

func TestBindRejectsBindingOfOtherTemplate(t *testing.T) {
	tests := map[string]struct {
		before func(*workv1alpha2.ResourceBinding)
		want   string
	}{
		"a binding of a deleted template of the same name": {
			before: func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences[0].UID = "uid-0" },
			want:   `apps/v1 Deployment web, which has a different owner reference UID: "uid-0"`,
		},
		"a binding of the same kind in another group": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.OwnerReferences[0].UID, b.OwnerReferences[0].APIVersion = "uid-2", "example.io/v1"
				b.Spec.Resource.APIVersion = "example.io/v1"
			},
			want: `example.io/v1 Deployment web, which has a different owner reference UID: "uid-2"`,
		},
		"a binding that a user created for another object": {
			before: func(b *workv1alpha2.ResourceBinding) {
				b.OwnerReferences = nil
				b.Spec.Resource.Name, b.Spec.Resource.UID = "other", ""
			},
			want: `apps/v1 Deployment other, which has a different owner reference UID: ""`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := &workv1alpha2.ResourceBinding{ObjectMeta: wantMetadata(), Spec: wantSpec()}
			test.before(got)
			before := got.DeepCopy()
			err := UpdateBinding(got, fullInput(newPolicy("shop", "web", setFullSpec)))
			if cmp.Diff(before, got) != "" {
				t.Error("the binding of another template is changed")
			}
			var owner *OwnerError
			if !errors.As(err, &owner) || !strings.Contains(err.Error(), "binding shop/web-deployment belongs to "+test.want) {
				t.Errorf("err = %v, want an OwnerError with %q", err, test.want)
			}
		})
	}
}

func TestBindIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespace := rapid.SampledFrom([]string{"", "shop"}).Draw(t, "scope")
		got := binding.New(namespace != "")
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			in := generateInput(t, namespace)
			if err := UpdateBinding(got, in); err != nil {
				t.Fatal(err)
			}
			once := got.DeepCopyObject()
			if err := UpdateBinding(got, in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, got.DeepCopyObject()); diff != "" {
				t.Fatalf("the second Bind changes the binding:\n%s", diff)
			}
		}
	})
}

func generateInput(t *rapid.T, namespace string) BindingInput {
	policyNamespace := namespace
	if rapid.Bool().Draw(t, "cluster policy") {
		policyNamespace = ""
	}
	policy := newPolicy(policyNamespace, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "policy"), setFullSpec)
	if rapid.Bool().Draw(t, "not suspended") {
		policy.PropagationSpec().Suspension = nil
	}
	in := fullInput(policy)
	in.Template.SetNamespace(namespace)
	in.Replicas = rapid.Int32Range(0, 2).Draw(t, "replicas")
	in.WorkloadAffinity = rapid.Bool().Draw(t, "workload affinity")
	in.UserState = rapid.SampledFrom([]string{"", "s"}).Draw(t, "state")
	if rapid.Bool().Draw(t, "no requirements") {
		in.Requirements, in.SchedulePriority = nil, nil
	}
	return in
}

func TestMergeSuspension(t *testing.T) {
	dispatching := &policyv1alpha1.Suspension{Dispatching: new(true)}
	tests := map[string]struct {
		policy *policyv1alpha1.Suspension
		before *workv1alpha2.Suspension
		want   *workv1alpha2.Suspension
	}{
		"policy suspends, binding without suspension": {policy: dispatching, want: &workv1alpha2.Suspension{Suspension: *dispatching}},
		"policy suspends, dispatching is replaced and scheduling is kept": {
			policy: dispatching,
			before: &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}}, Scheduling: new(true)},
			want:   &workv1alpha2.Suspension{Suspension: *dispatching, Scheduling: new(true)},
		},
		"no suspension at all": {},
		"policy does not suspend, scheduling is kept": {
			before: &workv1alpha2.Suspension{Suspension: *dispatching, Scheduling: new(true)},
			want:   &workv1alpha2.Suspension{Scheduling: new(true)},
		},
		"policy does not suspend, scheduling is kept if false": {
			before: &workv1alpha2.Suspension{Scheduling: new(false)},
			want:   &workv1alpha2.Suspension{Scheduling: new(false)},
		},
		"policy does not suspend, dispatching is removed": {before: &workv1alpha2.Suspension{Suspension: *dispatching}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MergeSuspension(test.policy, test.before)); diff != "" {
				t.Errorf("suspension differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkloadAffinityGroups(t *testing.T) {
	both := &policyv1alpha1.WorkloadAffinity{
		Affinity:     &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"},
		AntiAffinity: &policyv1alpha1.WorkloadAntiAffinityTerm{GroupByLabelKey: "tier"},
	}
	tests := map[string]struct {
		affinity *policyv1alpha1.WorkloadAffinity
		labels   map[string]string
		want     *workv1alpha2.WorkloadAffinityGroups
	}{
		"no workload affinity":            {labels: map[string]string{"app": "web"}},
		"a template without the labels":   {affinity: both, labels: map[string]string{"x": "y"}},
		"both labels":                     {affinity: both, labels: map[string]string{"app": "web", "tier": "1"}, want: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web", AntiAffinityGroup: "tier=1"}},
		"a label with an empty value":     {affinity: both, labels: map[string]string{"app": ""}, want: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app="}},
		"the label of anti-affinity only": {affinity: both, labels: map[string]string{"tier": "1"}, want: &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "tier=1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := WorkloadAffinityGroups(&policyv1alpha1.Placement{WorkloadAffinity: test.affinity}, test.labels)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("groups differ (-want +got):\n%s", diff)
			}
		})
	}
}
