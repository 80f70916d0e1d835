package work

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
)

func newClusterOverride(t testing.TB, name, spec string) override.Object {
	t.Helper()
	result := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &result.Spec); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRender(t *testing.T) {
	template := parseObject(t, deployment)
	got, err := Render(inputForFirstTarget(template, resourceBinding(2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	wantManifest := parseObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels:
    app: web
    karmada.io/managed: "true"
    propagationpolicy.karmada.io/permanent-id: policy-id
    resourcebinding.karmada.io/permanent-id: binding-id
    work.karmada.io/permanent-id: work-id
  annotations:
    note: hi
    resourcebinding.karmada.io/name: web-deployment
    resourcebinding.karmada.io/namespace: shop
    resourcetemplate.karmada.io/generation: "7"
    resourcetemplate.karmada.io/managed-annotations: note,resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace
    resourcetemplate.karmada.io/managed-labels: app,karmada.io/managed,propagationpolicy.karmada.io/permanent-id,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id
    resourcetemplate.karmada.io/uid: template-uid
    work.karmada.io/conflict-resolution: abort
    work.karmada.io/name: `+Name("Deployment", "shop", "web")+`
    work.karmada.io/namespace: karmada-es-m1
spec: {replicas: 2, template: {spec: {containers: [{name: web, image: nginx}]}}}
`)
	if diff := cmp.Diff(wantManifest, decodedManifest(t, got)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	got.Spec.Workload.Manifests = nil
	want := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-m1", Name: Name("Deployment", "shop", "web"),
			Labels: map[string]string{"resourcebinding.karmada.io/permanent-id": "binding-id", "work.karmada.io/permanent-id": "work-id"},
			Annotations: map[string]string{
				"resourcebinding.karmada.io/name": "web-deployment", "resourcebinding.karmada.io/namespace": "shop",
				"work.karmada.io/conflict-resolution": "abort", "work.karmada.io/rendered-from": "d636c6cfdda74515/12",
			},
			Finalizers: []string{"karmada.io/execution-controller"},
		},
		Spec: workv1alpha1.WorkSpec{SuspendDispatching: new(false), PreserveResourcesOnDeletion: new(false)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parseObject(t, deployment), template); diff != "" {
		t.Errorf("the template was changed: %s", diff)
	}
}

func TestRenderForAClusterResourceBinding(t *testing.T) {
	from := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "r-clusterrole", Labels: map[string]string{"clusterresourcebinding.karmada.io/permanent-id": "crb-id"},
	}}
	from.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	got, err := Render(inputForFirstTarget(parseObject(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`), from))
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	second := from.DeepCopy()
	second.Name = binding.Names(kind, "r")[1]
	ofSecond, err := Render(inputForFirstTarget(parseObject(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}`), second))
	if err != nil {
		t.Fatal(err)
	}
	if names := Names(kind, "", "r"); got.Name != names[0] || ofSecond.Name != names[1] {
		t.Errorf("the Works of bindings %s and %s are %s and %s, want %s", from.Name, second.Name, got.Name, ofSecond.Name, names)
	}
	manifest := decodedManifest(t, got)
	for side, marked := range map[string]metav1.Object{"work": got, "manifest": manifest} {
		if id := marked.GetLabels()["clusterresourcebinding.karmada.io/permanent-id"]; id != "crb-id" {
			t.Errorf("%s: binding id %q", side, id)
		}
		if name := marked.GetAnnotations()["clusterresourcebinding.karmada.io/name"]; name != "r-clusterrole" {
			t.Errorf("%s: binding name %q", side, name)
		}
	}
	for _, absent := range []string{"resourcetemplate.karmada.io/generation", "resourcetemplate.karmada.io/uid"} {
		if _, found := manifest.GetAnnotations()[absent]; found {
			t.Errorf("the template has no value for it, the manifest has %s", absent)
		}
	}
}

func TestRenderReplicas(t *testing.T) {
	tests := map[string]struct {
		change func(*RenderInput)
		want   int64
	}{
		"the number of the scheduler wins":                          {func(*RenderInput) {}, 2},
		"a target without replicas":                                 {func(in *RenderInput) { in.Target.Replicas = 0 }, 0},
		"the template's number stays if the kind cannot be revised": {func(in *RenderInput) { in.ReviseReplicas = nil }, 5},
		"the template's number stays if it is not a workload":       {func(in *RenderInput) { in.Binding.BindingSpec().Replicas = 0 }, 5},
		"requirements alone make a workload": {func(in *RenderInput) {
			in.Binding.BindingSpec().Replicas = 0
			in.Binding.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		}, 2},
		"an override wins": {func(in *RenderInput) {
			in.Overrides.Cluster = []override.Object{newClusterOverride(t, "p", `overrideRules: [{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 9}]}}]`)}
		}, 9},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputForFirstTarget(parseObject(t, deployment), resourceBinding(2, 3))
			tc.change(&in)
			got, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			replicas, _, _ := unstructured.NestedInt64(decodedManifest(t, got).Object, "spec", "replicas")
			if replicas != tc.want {
				t.Errorf("%d replicas, want %d", replicas, tc.want)
			}
		})
	}
}

func TestRenderConflictResolution(t *testing.T) {
	tests := map[string]struct {
		annotation string
		binding    policyv1alpha1.ConflictResolution
		want       string
	}{
		"abort by default":                         {"", "", "abort"},
		"the binding decides":                      {"", "Overwrite", "overwrite"},
		"the template wins over the binding":       {"abort", "Overwrite", "abort"},
		"the template can overwrite":               {"overwrite", "Abort", "overwrite"},
		"an unknown value is ignored":              {"Overwrite", "Abort", "abort"},
		"the binding decides for an unknown value": {"maybe", "Overwrite", "overwrite"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, deployment)
			if tc.annotation != "" {
				template.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": tc.annotation})
			}
			from := resourceBinding(1)
			from.Spec.ConflictResolution = tc.binding
			got, err := Render(inputForFirstTarget(template, from))
			if err != nil {
				t.Fatal(err)
			}
			for side, marked := range map[string]metav1.Object{"work": got, "manifest": decodedManifest(t, got)} {
				if got := marked.GetAnnotations()["work.karmada.io/conflict-resolution"]; got != tc.want {
					t.Errorf("%s: %q, want %q", side, got, tc.want)
				}
			}
		})
	}
}

func TestRenderSuspensionAndPreservation(t *testing.T) {
	from := resourceBinding(1, 1)
	from.Spec.PreserveResourcesOnDeletion = new(true)
	from.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}},
	}}
	for i, suspended := range []bool{true, false} {
		in := inputForFirstTarget(parseObject(t, deployment), from)
		in.Target = from.Spec.Clusters[i]
		in.Cluster = newCluster(in.Target.Name)
		got, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		if *got.Spec.SuspendDispatching != suspended || !*got.Spec.PreserveResourcesOnDeletion {
			t.Errorf("%s: suspended %v, preserved %v", in.Target.Name, *got.Spec.SuspendDispatching, *got.Spec.PreserveResourcesOnDeletion)
		}
	}
}

func TestRenderWithOverrides(t *testing.T) {
	in := inputForFirstTarget(parseObject(t, deployment), resourceBinding(1))
	in.Overrides.Cluster = []override.Object{newClusterOverride(t, "p", `overrideRules: [{overriders: {
  labelsOverrider: [{operator: remove, value: {app: ""}}],
  annotationsOverrider: [{operator: remove, value: {note: ""}}],
  plaintext: [{path: /metadata/name, operator: replace, value: other}]}}]`)}
	in.Overrides.Allowed.AllowIdentityChange = true
	got, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := Name("Deployment", "shop", "other"); got.Name != want {
		t.Errorf("the Work is called %q, want %q after the renamed object", got.Name, want)
	}
	if record := got.Annotations["policy.karmada.io/applied-cluster-overrides"]; !strings.HasPrefix(record, `[{"policyName":"p",`) {
		t.Errorf("record %q", record)
	}
	if _, found := got.Annotations["policy.karmada.io/applied-overrides"]; found {
		t.Error("a record of OverridePolicies, though none was applied")
	}
	annotations := decodedManifest(t, got).GetAnnotations()
	if strings.Contains(annotations["resourcetemplate.karmada.io/managed-labels"], "app,") {
		t.Error("a label that an override removed is listed")
	}
	if strings.Contains(annotations["resourcetemplate.karmada.io/managed-annotations"], "note") {
		t.Error("an annotation that an override removed is listed")
	}
}

func TestRenderErrors(t *testing.T) {
	in := inputForFirstTarget(parseObject(t, deployment), resourceBinding(1))
	in.Overrides.Cluster = []override.Object{newClusterOverride(t, "p", `overrideRules: [{overriders: {plaintext: [{path: /a/b, operator: remove}]}}]`)}
	var failure *override.RuleError
	if _, err := Render(in); !errors.As(err, &failure) {
		t.Errorf("got %v, want the error of the rule", err)
	}
	in = inputForFirstTarget(parseObject(t, deployment), resourceBinding(1))
	in.Binding.SetLabels(nil)
	if _, err := Render(in); err == nil {
		t.Error("a Work without the id of its binding")
	}
	in = inputForFirstTarget(parseObject(t, deployment), resourceBinding(1))
	cause := errors.New("script failed")
	in.ReviseReplicas = func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error) { return nil, cause }
	if _, err := Render(in); !errors.Is(err, cause) || !strings.Contains(err.Error(), `"m1"`) {
		t.Errorf("got %v, want the cause and the cluster", err)
	}
}

func TestRenderPreservedState(t *testing.T) {
	task := func(mode policyv1alpha1.PurgeMode, value string, before ...string) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{
			FromCluster: "m9", PurgeMode: mode, ClustersBeforeFailover: before,
			PreservedLabelState: map[string]string{"resume.example/checkpoint": value},
		}
	}
	tests := map[string]struct {
		replicas []int32
		tasks    []workv1alpha2.GracefulEvictionTask
		off      bool
		want     string
		fails    bool
	}{
		"the single new target gets the state":       {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "s3-0042", "m9")}, want: "s3-0042"},
		"the last task counts":                       {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "old"), task("Directly", "new")}, want: "new"},
		"nothing when switched off":                  {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "s3-0042")}, off: true},
		"nothing without tasks":                      {replicas: []int32{1}},
		"nothing with two targets":                   {replicas: []int32{1, 1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "s3-0042")}},
		"nothing while the old copy may run":         {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Gracefully", "s3-0042")}},
		"nothing for a cluster that ran it before":   {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "s3-0042", "m1", "m9")}},
		"a value that cannot be a label is an error": {replicas: []int32{1}, tasks: []workv1alpha2.GracefulEvictionTask{task("Directly", "not a label")}, fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := resourceBinding(tc.replicas...)
			from.Spec.GracefulEvictionTasks = tc.tasks
			in := inputForFirstTarget(parseObject(t, deployment), from)
			in.PassPreservedState = !tc.off
			got, err := Render(in)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			manifest := decodedManifest(t, got)
			if state := manifest.GetLabels()["resume.example/checkpoint"]; state != tc.want {
				t.Errorf("state %q, want %q", state, tc.want)
			}
			listed := strings.Contains(manifest.GetAnnotations()["resourcetemplate.karmada.io/managed-labels"], "resume.example/checkpoint")
			if listed != (tc.want != "") {
				t.Errorf("listed among the managed labels: %v", listed)
			}
		})
	}
}

func TestRenderForOwner(t *testing.T) {
	namespace := parseObject(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: ns-uid, labels: {a: b}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "ns-uid", Controller: new(true), BlockOwnerDeletion: new(true)}
	got, err := RenderForOwner(RenderForOwnerInput{
		Template: namespace, Cluster: newCluster("m1"), Owner: &owner, PermanentID: "work-id",
		ClusterOverrides: []override.Object{newClusterOverride(t, "p", `overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {c: d}}]}}]`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := decodedManifest(t, got)
	wantLabels := map[string]string{"a": "b", "c": "d", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "work-id"}
	if diff := cmp.Diff(wantLabels, manifest.GetLabels()); diff != "" {
		t.Errorf("labels of the manifest (-want +got):\n%s", diff)
	}
	for side, marked := range map[string]metav1.Object{"work": got, "manifest": manifest} {
		for key := range marked.GetAnnotations() {
			if key == "work.karmada.io/conflict-resolution" || strings.Contains(key, "resourcebinding") {
				t.Errorf("%s has %s", side, key)
			}
		}
	}
	if got.Name != Name("Namespace", "", "shop") || got.Namespace != "karmada-es-m1" {
		t.Errorf("the Work is %s/%s", got.Namespace, got.Name)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{owner}, got.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if got.Spec.SuspendDispatching != nil || got.Spec.PreserveResourcesOnDeletion != nil {
		t.Error("suspension or preservation is set")
	}
	if got.Annotations["policy.karmada.io/applied-cluster-overrides"] == "" {
		t.Error("no record of the override")
	}
}

func BenchmarkRender(b *testing.B) {
	in := inputForFirstTarget(parseObject(b, deployment), resourceBinding(2, 3))
	in.Overrides.Cluster = []override.Object{
		newClusterOverride(b, "mirror", `overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: reg.local}]}}]`),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(in); err != nil {
			b.Fatal(err)
		}
	}
}
