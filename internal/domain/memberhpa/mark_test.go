package memberhpa

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// newTemplate returns a template whose label has the given value, or that has no label if the value is
// empty.
func newTemplate(label string, isOwn bool) *metav1.ObjectMeta {
	created := &metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"}}
	if label != "" {
		created.Labels[workv1alpha2.RetainReplicasLabel] = label
	}
	if isOwn {
		created.Annotations[workv1alpha2.RetainReplicasSetByAnnotation] = workv1alpha2.RetainReplicasSetByMarker
	}
	return created
}

func TestSetMark(t *testing.T) {
	tests := map[string]struct {
		before   *metav1.ObjectMeta
		isScaled bool
		want     *metav1.ObjectMeta
	}{
		"a template that an HPA scales is marked":               {newTemplate("", false), true, newTemplate("true", true)},
		"a template without labels is marked":                   {&metav1.ObjectMeta{}, true, &metav1.ObjectMeta{Labels: map[string]string{workv1alpha2.RetainReplicasLabel: "true"}, Annotations: map[string]string{workv1alpha2.RetainReplicasSetByAnnotation: "hpa-scale-target-marker"}}},
		"a marked template that an HPA scales is unchanged":     {newTemplate("true", true), true, newTemplate("true", true)},
		"a label that somebody removed is added again":          {newTemplate("", true), true, newTemplate("true", true)},
		"the own label is removed when no HPA scales":           {newTemplate("true", true), false, newTemplate("", false)},
		"a user's label is not owned while an HPA scales":       {newTemplate("true", false), true, newTemplate("true", false)},
		"a user's label is kept when no HPA scales":             {newTemplate("true", false), false, newTemplate("true", false)},
		"a user may refuse the label by another value":          {newTemplate("false", false), true, newTemplate("false", false)},
		"a value that a user changed belongs to the user":       {newTemplate("false", true), true, newTemplate("false", false)},
		"a changed value is kept when no HPA scales":            {newTemplate("false", true), false, newTemplate("false", false)},
		"a template without mark and HPA is unchanged":          {newTemplate("", false), false, newTemplate("", false)},
		"an annotation without label is removed without an HPA": {newTemplate("", true), false, newTemplate("", false)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.before.DeepCopy()
			changed := SetMark(got, test.isScaled)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if want := !HasSameMark(test.before, got); changed != want {
				t.Errorf("changed = %t, want %t", changed, want)
			}
		})
	}
}

// TestMarksLeaveNoTrace marks and unmarks any template. Its labels must be those from before, and a
// second call must change nothing.
func TestMarksLeaveNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := newTemplate(rapid.SampledFrom([]string{"", "true", "false", "x"}).Draw(t, "label"), false)
		got := before.DeepCopy()
		for _, isScaled := range rapid.SliceOf(rapid.Bool()).Draw(t, "scaled") {
			SetMark(got, isScaled)
			if SetMark(got, isScaled) {
				t.Fatalf("the second call changed %v", got)
			}
		}
		SetMark(got, false)
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("template (-before +after):\n%s", diff)
		}
	})
}

func TestScaleTarget(t *testing.T) {
	reference := func(apiVersion, kind, name string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name}
	}
	byPolicy := map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	byClusterPolicy := map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
	want := Target{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	tests := map[string]struct {
		labels    map[string]string
		reference map[string]any
		want      Target
	}{
		"an HPA that a PropagationPolicy claims":        {byPolicy, reference("apps/v1", "Deployment", "web"), want},
		"an HPA that a ClusterPropagationPolicy claims": {byClusterPolicy, reference("apps/v1", "Deployment", "web"), want},
		"an HPA that no policy claims":                  {nil, reference("apps/v1", "Deployment", "web"), Target{}},
		"an HPA without a target":                       {byPolicy, nil, Target{}},
		"a target without an API version":               {byPolicy, reference("", "Deployment", "web"), Target{}},
		"a target with an invalid API version":          {byPolicy, reference("a/b/c", "Deployment", "web"), Target{}},
		"a target without a kind":                       {byPolicy, reference("apps/v1", "", "web"), Target{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hpa := &unstructured.Unstructured{Object: map[string]any{}}
			hpa.SetNamespace("shop")
			hpa.SetLabels(test.labels)
			if test.reference != nil {
				hpa.Object["spec"] = map[string]any{"scaleTargetRef": test.reference}
			}
			got, ok := ScaleTarget(hpa)
			if got != test.want || ok != (test.want != Target{}) {
				t.Errorf("target %v, %t; want %v", got, ok, test.want)
			}
		})
	}
}

func TestVersionsOfATemplateHaveOneKey(t *testing.T) {
	a := Target{Kind: schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Game"}, Namespace: "shop", Name: "web"}
	b := a
	b.Kind.Version = "v2"
	if a.Key() != b.Key() {
		t.Errorf("keys %s and %s differ", a.Key(), b.Key())
	}
}
