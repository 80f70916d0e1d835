package simulation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

func threeMembers() []*clusterv1alpha1.Cluster {
	return []*clusterv1alpha1.Cluster{member("m1", 10), member("m2", 10), member("m3", 10)}
}

func TestGivenObjects(t *testing.T) {
	selecting := func(placement string, selected ...string) func(t *testing.T, in *Input) {
		return func(t *testing.T, in *Input) {
			in.GivenPolicies = []policy.Object{policyFor(t, "web", placement, selected...)}
		}
	}
	tests := map[string]struct {
		change func(t *testing.T, in *Input)
		want   map[string]string
	}{
		"a new template gets the clusters of the stored policy": {
			change: func(_ *testing.T, in *Input) { in.GivenTemplates = []*unstructured.Unstructured{template("new", 3)} },
			want:   map[string]string{"new": "changed: none -> m1 3, m2 3, m3 3 new"},
		},
		"a template that no policy selects": {
			change: func(_ *testing.T, in *Input) {
				in.GivenTemplates = []*unstructured.Unstructured{template("wep", 3)}
				in.Policies = in.Policies[:1]
			},
			want: map[string]string{"wep": `unplaced: none -> none [NoPolicyMatches] no policy selects it; PropagationPolicy shop/web comes nearest: selects name "web", not "wep"`},
		},
		"more replicas of a stored template are divided": {
			change: func(_ *testing.T, in *Input) { in.GivenTemplates = []*unstructured.Unstructured{template("web", 6)} },
			want:   map[string]string{"web": "changed: m1 2, m2 2 -> m1 3, m2 3 the replicas changed"},
		},
		"a file without replicas keeps the stored number": {
			change: func(_ *testing.T, in *Input) {
				given := template("web", 0)
				unstructured.RemoveNestedField(given.Object, "spec", "replicas")
				in.GivenTemplates = []*unstructured.Unstructured{given}
			},
			want: map[string]string{"web": "unchanged: m1 2, m2 2 -> m1 2, m2 2"},
		},
		"a new file without replicas has one replica": {
			change: func(_ *testing.T, in *Input) {
				given := template("new", 0)
				unstructured.RemoveNestedField(given.Object, "spec")
				in.GivenTemplates = []*unstructured.Unstructured{given}
			},
			want: map[string]string{"new": "changed: none -> m1 1, m2 1, m3 1 new"},
		},
		"the last of several files counts": {
			change: func(_ *testing.T, in *Input) {
				in.GivenTemplates = []*unstructured.Unstructured{template("new", 3), template("new", 5)}
			},
			want: map[string]string{"new": "changed: none -> m1 5, m2 5, m3 5 new"},
		},
		"two new objects with the same usual name of the binding": {
			change: func(_ *testing.T, in *Input) {
				in.GivenTemplates = []*unstructured.Unstructured{template("new:api", 3), template("new.api", 2)}
			},
			want: map[string]string{
				"new:api": "changed: none -> m1 3, m2 3, m3 3 new",
				"new.api": "changed: none -> m1 2, m2 2, m3 2 new",
			},
		},
		"a policy changes where its templates go": {
			change: selecting(onM1, "Deployment/web"),
			want:   map[string]string{"web": "changed: m1 2, m2 2 -> m1 4 m2: not selected by the cluster affinity"},
		},
		"a policy releases what it no longer selects, and the next policy takes it": {
			change: selecting(onM1, "Deployment/other"),
			want:   map[string]string{"web": "changed: m1 2, m2 2 -> m1 4, m2 4, m3 4 the placement changed"},
		},
		"a released template without another policy keeps its copies": {
			change: func(t *testing.T, in *Input) {
				selecting(onM1, "Deployment/other")(t, in)
				in.Policies = in.Policies[:1]
			},
			want: map[string]string{"web": `notScheduled: m1 2, m2 2 -> m1 2, m2 2 [NoPolicyMatches] its copies stay, and changes do not reach them: no policy selects it; PropagationPolicy shop/web comes nearest: selects name "other", not "web"`},
		},
		"a new policy does not take a claimed template": {
			change: func(t *testing.T, in *Input) {
				in.GivenPolicies = []policy.Object{policyFor(t, "taker", onM1, "Deployment/web")}
			},
			want: map[string]string{},
		},
		"a new policy preempts if the feature gate is on": {
			change: func(t *testing.T, in *Input) {
				taker := policyFor(t, "taker", onM1, "Deployment/web")
				taker.Spec.Preemption, taker.Spec.Priority = policyv1alpha1.PreemptAlways, new(int32(5))
				in.GivenPolicies, in.Settings.Preemption = []policy.Object{taker}, true
			},
			want: map[string]string{"web": "changed: m1 2, m2 2 -> m1 4 m2: not selected by the cluster affinity"},
		},
		"a Lazy policy waits for a change of its templates": {
			change: func(t *testing.T, in *Input) {
				lazy := policyFor(t, "web", onM1, "Deployment/web")
				lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
				in.GivenPolicies = []policy.Object{lazy}
			},
			want: map[string]string{"web": "notScheduled: m1 2, m2 2 -> m1 2, m2 2 [LazyPolicyWaits] PropagationPolicy shop/web is Lazy: it takes effect when the object changes"},
		},
		"an object of the control plane": {
			change: func(_ *testing.T, in *Input) {
				given := template("web", -1)
				given.SetNamespace("karmada-system")
				in.GivenTemplates = []*unstructured.Unstructured{given}
			},
			want: map[string]string{"web": "unplaced: none -> none [NeverPropagated] ConfigMap karmada-system/web is never propagated: it belongs to the control plane; remove the selector or the binding that refers to it"},
		},
		"another object owns the binding with the usual name": {
			change: func(_ *testing.T, in *Input) { in.GivenTemplates = []*unstructured.Unstructured{template("Web", 1)} },
			want:   map[string]string{"Web": "changed: none -> m1 1, m2 1, m3 1 new"},
		},
		"the binding of a deleted object still exists": {
			change: func(_ *testing.T, in *Input) {
				in.GivenTemplates, in.Templates = []*unstructured.Unstructured{template("web", 1)}, nil
			},
			want: map[string]string{"web": `unplaced: none -> none [NameCollision] binding shop/web-deployment belongs to apps/v1 Deployment web, which has a different owner reference UID: "uid-web", while the template has "{Deployment.apps shop/web}"; the template gets a binding when that binding is deleted`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := []policy.Object{policyFor(t, "web", evenOnM1M2, "Deployment/web"), policyFor(t, "zz-all", everywhere, "Deployment/")}
			w := newWorld(t, threeMembers(), stored, template("web", 4))
			test.change(t, &w.Input)
			got := map[string]string{}
			for _, outcome := range Run(t.Context(), w.Input).Objects {
				got[outcome.Name] = describe(outcome)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreparePolicyReportsWhatTheControlPlaneRejects(t *testing.T) {
	stored := policyFor(t, "web", everywhere, "Deployment/web")
	changed := stored.DeepCopy()
	changed.Labels, changed.Spec.SchedulerName = nil, "volcano"
	if _, err := PreparePolicy(changed, stored); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("got %v", err)
	}
	changed.Spec.SchedulerName = ""
	prepared, err := PreparePolicy(changed, stored)
	if err != nil || policy.ClaimOf(prepared) != policy.ClaimOf(stored) || changed.Labels != nil {
		t.Errorf("got %+v, error %v", prepared, err)
	}
}

func TestReviseReplicas(t *testing.T) {
	both := []*unstructured.Unstructured{template("web", 2), template("settings", -1)}
	revised, err := ReviseReplicas(t.Context(), rules(), both, 7)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(revised[0].Object, "spec", "replicas"); got != 7 {
		t.Errorf("%d replicas", got)
	}
	if diff := cmp.Diff(both[1].Object, revised[1].Object); diff != "" {
		t.Errorf("a kind without replicas changed:\n%s", diff)
	}
	if got, _, _ := unstructured.NestedInt64(both[0].Object, "spec", "replicas"); got != 2 {
		t.Errorf("the argument has %d replicas", got)
	}
	if _, err := ReviseReplicas(t.Context(), rules(), both[1:], 7); err == nil {
		t.Error("no error without a workload")
	}
}

func TestDependenciesFollowTheirDependents(t *testing.T) {
	p := policyFor(t, "web", evenOnM1M2, "Deployment/web")
	w := newWorld(t, threeMembers(), []policy.Object{p}, template("web", 4))
	dependency := &workv1alpha2.ResourceBinding{}
	dependency.Namespace, dependency.Name = "shop", "settings-configmap"
	dependency.Spec.Resource = referenceOf(template("settings", -1))
	dependency.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment", Clusters: w.binding(t, "web-deployment").Spec.Clusters}}
	w.Bindings = append(w.Bindings, dependency)
	w.GivenPolicies = []policy.Object{policyFor(t, "web", onM1, "Deployment/web")}
	objects := Run(t.Context(), w.Input).Objects
	if len(objects) != 2 {
		t.Fatalf("%d objects, want the Deployment and its dependency", len(objects))
	}
	want := "changed: m1, m2 -> m1 [AttachedToDependents] follows the objects that refer to it: shop/web-deployment"
	if diff := cmp.Diff(want, describe(objects[0])); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestGivenDependenciesFollowGivenDependents(t *testing.T) {
	p := policyFor(t, "web", onM1, "Deployment/web")
	p.Spec.PropagateDeps = true
	w := newWorld(t, threeMembers(), []policy.Object{p})
	web := template("web", 1)
	web.Object["spec"] = map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
		"volumes": []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "settings"}}},
	}}}
	w.GivenTemplates = []*unstructured.Unstructured{template("settings", -1), web, template("stray", -1)}
	got := map[string]string{}
	for _, outcome := range Run(t.Context(), w.Input).Objects {
		got[outcome.Name] = describe(outcome)
	}
	want := map[string]string{
		"settings": "changed: none -> m1 [AttachedToDependents] follows the objects that refer to it: shop/web-deployment",
		"stray":    "unplaced: none -> none [NoPolicyMatches] no policy selects it",
		"web":      "changed: none -> m1 1 new",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestWorkloadsOfAGroupSeeEachOther(t *testing.T) {
	const apart = `{workloadAffinity: {antiAffinity: {groupByLabelKey: team}}, spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}`
	p := policyFor(t, "all", apart, "Deployment/")
	given := []*unstructured.Unstructured{template("a", 1), template("b", 1)}
	for _, each := range given {
		each.SetLabels(map[string]string{"team": "x"})
	}
	w := newWorld(t, threeMembers(), []policy.Object{p})
	w.GivenTemplates, w.Settings.Features.WorkloadAffinity = given, true
	got := map[string]string{}
	for _, outcome := range Run(t.Context(), w.Input).Objects {
		got[outcome.Name] = describeTargets(outcome.After)
	}
	if diff := cmp.Diff(map[string]string{"a": "m1 1", "b": "m2 1"}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestPlacedWorkloadsUseCapacityIfProtected(t *testing.T) {
	p := policyFor(t, "all", byCapacity, "Deployment/")
	w := newWorld(t, []*clusterv1alpha1.Cluster{member("m1", 10)}, []policy.Object{p})
	w.GivenTemplates = []*unstructured.Unstructured{template("a", 6), template("b", 6)}
	if got := Run(t.Context(), w.Input).Count(Unplaced); got != 0 {
		t.Errorf("%d unplaced without protection, want 0", got)
	}
	w.Settings.OvercommitProtection = true
	if got := Run(t.Context(), w.Input).Count(Unplaced); got != 1 {
		t.Errorf("%d unplaced with protection, want 1", got)
	}
}
