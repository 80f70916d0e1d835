package binding

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
)

func replaceOverrider(t *testing.T, path, value string) policyv1alpha1.PlaintextOverrider {
	t.Helper()
	return policyv1alpha1.PlaintextOverrider{Path: path, Operator: policyv1alpha1.OverriderOpReplace, Value: policyv1alpha1.JSON{Raw: []byte(value)}}
}

// TestBindingReferenceIsChecked checks bindings that were stored without admission. The Deployment
// shop/web is delivered before the reference in the binding changes.
func TestBindingReferenceIsChecked(t *testing.T) {
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte("secret")}}
	}
	joining := secret("shop", "m3")
	joining.Labels = map[string]string{"karmada.io/system": "true"}
	joined := cluster("m2")
	joined.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "shop", Name: "m2-credentials"}
	to := func(apiVersion, kind, namespace, name string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	tests := map[string]struct {
		object client.Object
		to     workv1alpha2.ObjectReference
		want   string
	}{
		"the credentials of a cluster":          {secret("karmada-cluster", "m2"), to("v1", "Secret", "karmada-cluster", "m2"), `must not refer to Secret "m2" in namespace "karmada-cluster"`},
		"credentials beside the templates":      {secret("shop", "m2-credentials"), to("v1", "Secret", "shop", "m2-credentials"), `it holds the credentials of cluster "m2"`},
		"credentials of a cluster that joins":   {joining, to("v1", "Secret", "shop", "m3"), "the label karmada.io/system=true marks it"},
		"a Secret of another namespace":         {secret("bank", "s"), to("v1", "Secret", "bank", "s"), `must not refer to Secret "s" in namespace "bank"`},
		"a cluster-scoped object":               {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}}, to("v1", "Namespace", "", "bank"), "without a namespace"},
		"a kind that belongs to Karmada":        {&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"}}, to("work.karmada.io/v1alpha1", "Work", "shop", "w"), "is never propagated"},
		"a kind that the control plane skips":   {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}}, to("v1", "ConfigMap", "shop", "c"), "--skipped-propagating-apis"},
		"a cluster-scoped kind, in a namespace": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, to("v1", "Namespace", "shop", "shop"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := bindingTo("m1")
			w := newFixture(t, cluster("m1"), joined.DeepCopy(), deployment(), tc.object, bound)
			apis, err := tenancy.ParseSkippedAPIs("v1/ConfigMap")
			if err != nil {
				t.Fatal(err)
			}
			w.options.Propagated.APIs = apis
			w.reconcile()
			before := w.works()
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource = tc.to })
			_, writes := w.reconcile()
			expectedWrites := []string{"patch metadata of ResourceBinding"}
			if tc.want == "" {
				expectedWrites = nil
			}
			if diff := cmp.Diff(expectedWrites, writes, cmpopts.EquateEmpty()); diff != "" || len(w.works()) != len(before) {
				t.Errorf("the writes of the reconcile (-want +got):\n%s", diff)
			}
			failures := w.recordedFailures()
			if tc.want != "" && !strings.Contains(failures["m1"], tc.want) {
				t.Errorf("the reported failure is %q, want %q", failures, tc.want)
			}
			if stays := strings.Contains(failures["m1"], "what was delivered stays in the clusters: delete the binding"); stays != (tc.want != "") {
				t.Errorf("the reported failure is %q", failures)
			}
		})
	}
}

func TestOverrideThatChangesIdentityKeepsWork(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
	w.reconcile()
	const clusterAdmin = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"mallory"}}`
	if err := w.store.Create(t.Context(), newOverridePolicy("escalate", replaceOverrider(t, "", clusterAdmin))); err != nil {
		t.Fatal(err)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m2"})
	})
	_, writes := w.reconcile()
	if diff := cmp.Diff([]string{"patch metadata of ResourceBinding"}, writes); diff != "" {
		t.Errorf("the writes of the reconcile (-want +got):\n%s", diff)
	}
	if all := w.works(); len(all) != 1 || strings.Contains(string(all[0].Spec.Workload.Manifests[0].Raw), "mallory") {
		t.Errorf("the Works are %v", all)
	}
	reported := w.recordedFailures()
	for _, name := range []string{"m1", "m2"} {
		if !strings.Contains(reported[name], `OverridePolicy "shop/escalate", spec.overrideRules[0].overriders.plaintext[0]`) {
			t.Errorf("cluster %s: %q", name, reported[name])
		}
	}
}

// TestWorkOfOtherObjectIsNotTakenOver stores a Work of another object. This Work has the name that
// the Work of the Deployment shop/web needs.
func TestWorkOfOtherObjectIsNotTakenOver(t *testing.T) {
	const other, own = `{"apiVersion":"example.io/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`
	annotationsOf := func(namespace, name string) map[string]string {
		return map[string]string{"resourcebinding.karmada.io/namespace": namespace, "resourcebinding.karmada.io/name": name}
	}
	tests := map[string]struct {
		id, manifest string
		annotations  map[string]string
		bindings     []client.Object
		message      string
	}{
		"of a binding that exists":                       {"id-2", other, annotationsOf("bank", "web-deployment"), []client.Object{bankBinding()}, "belongs to binding bank/web-deployment"},
		"of a binding that exists, with the same object": {"id-2", own, annotationsOf("bank", "web-deployment"), []client.Object{bankBinding()}, "belongs to binding bank/web-deployment"},
		"of a deleted binding":                           {"id-2", other, annotationsOf("bank", "web-deployment"), nil, "contains Deployment.example.io shop/web, which does not belong to this binding"},
		"of no binding":                                  {"", other, nil, nil, "contains Deployment.example.io shop/web"},
		"of no binding, with the same object":            {"", own, nil, nil, ""},
		"of an earlier binding with another template":    {"id-0", other, annotationsOf("shop", "web-deployment"), nil, "contains Deployment.example.io shop/web"},
		"of an earlier binding of the same name":         {"id-0", own, annotationsOf("shop", "web-deployment"), nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: work.ExecutionNamespace("m1"), Name: work.Name("Deployment", "shop", "web"), Annotations: maps.Clone(tc.annotations),
			}}
			if tc.id != "" {
				stored.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: tc.id}
			}
			stored.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(tc.manifest)}}}
			w := newFixture(t, append(tc.bindings, cluster("m1"), deployment(), bindingTo("m1"), stored)...)
			w.reconcile()
			taken := string(w.works()[0].Spec.Workload.Manifests[0].Raw) != tc.manifest
			reported := w.recordedFailures()["m1"]
			if taken != (tc.message == "") || !strings.Contains(reported, tc.message) {
				t.Errorf("taken: %v, the reported failure is %q, want %q", taken, reported, tc.message)
			}
		})
	}
}

func bankBinding() *workv1alpha2.ResourceBinding {
	bound := bindingTo()
	bound.Namespace, bound.UID = "bank", "binding-2"
	bound.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-2"}
	return bound
}
