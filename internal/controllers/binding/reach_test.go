package binding

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

func plaintext(t *testing.T, path, value string) policyv1alpha1.PlaintextOverrider {
	t.Helper()
	return policyv1alpha1.PlaintextOverrider{Path: path, Operator: policyv1alpha1.OverriderOpReplace, Value: policyv1alpha1.JSON{Raw: []byte(value)}}
}

// TestABindingReachesOnlyItsOwn is about bindings that were stored without admission.
// A Deployment shop/web stands for what is delivered in the first place.
func TestABindingReachesOnlyItsOwn(t *testing.T) {
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte("secret")}}
	}
	joining := secret("shop", "m3")
	joining.Labels = map[string]string{"karmada.io/system": "true"}
	holder := cluster("m2")
	holder.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "shop", Name: "m2-credentials"}
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
		"an object without a namespace":         {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}}, to("v1", "Namespace", "", "bank"), "without a namespace"},
		"a kind that belongs to Karmada":        {&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"}}, to("work.karmada.io/v1alpha1", "Work", "shop", "w"), "is never propagated"},
		"a kind that the control plane skips":   {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}}, to("v1", "ConfigMap", "shop", "c"), "--skipped-propagating-apis"},
		"a cluster-scoped kind, in a namespace": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, to("v1", "Namespace", "shop", "shop"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := bindingTo("m1")
			w := newWorld(t, cluster("m1"), holder.DeepCopy(), deployment(), tc.object, bound)
			apis, err := reach.ParseSkippedAPIs("v1/ConfigMap")
			if err != nil {
				t.Fatal(err)
			}
			w.options.Propagated.APIs = apis
			w.pass()
			before := w.works()
			w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource = tc.to })
			_, writes := w.pass()
			if len(writes) != 0 || len(w.works()) != len(before) {
				t.Errorf("a pass asked for %v", writes)
			}
			failures := w.failures.Of(bound.UID)
			if tc.want != "" && !strings.Contains(failures["m1"], tc.want) {
				t.Errorf("the binding says %q, want %q", failures, tc.want)
			}
			if stays := strings.Contains(failures["m1"], "what was delivered stays in the clusters: delete the binding"); stays != (tc.want != "") {
				t.Errorf("the binding says %q", failures)
			}
		})
	}
}

func TestAnOverrideThatMakesAnotherObjectLeavesTheWorkAsItIs(t *testing.T) {
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
	w.pass()
	const clusterAdmin = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"mallory"}}`
	if err := w.store.Create(t.Context(), overriding("escalate", plaintext(t, "", clusterAdmin))); err != nil {
		t.Fatal(err)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m2"})
	})
	if _, writes := w.pass(); len(writes) != 0 {
		t.Errorf("a pass asked for %v", writes)
	}
	if all := w.works(); len(all) != 1 || strings.Contains(string(all[0].Spec.Workload.Manifests[0].Raw), "mallory") {
		t.Errorf("the Works are %v", all)
	}
	said := w.failures.Of(bindingTo().UID)
	for _, name := range []string{"m1", "m2"} {
		if !strings.Contains(said[name], `OverridePolicy "shop/escalate", spec.overrideRules[0].overriders.plaintext[0]`) {
			t.Errorf("cluster %s: %q", name, said[name])
		}
	}
}

// TestAWorkOfAnotherObjectIsNeverTaken meets a Work of the name that the Work of
// Deployment shop/web has.
func TestAWorkOfAnotherObjectIsNeverTaken(t *testing.T) {
	const other, own = `{"apiVersion":"example.io/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`
	led := func(namespace, name string) map[string]string {
		return map[string]string{"resourcebinding.karmada.io/namespace": namespace, "resourcebinding.karmada.io/name": name}
	}
	tests := map[string]struct {
		id, manifest string
		annotations  map[string]string
		bindings     []client.Object
		says         string
	}{
		"of a binding that exists":                       {"id-2", other, led("bank", "web-deployment"), []client.Object{bankBinding()}, "belongs to binding bank/web-deployment"},
		"of a binding that exists, with the same object": {"id-2", own, led("bank", "web-deployment"), []client.Object{bankBinding()}, "belongs to binding bank/web-deployment"},
		"of a binding that is gone":                      {"id-2", other, led("bank", "web-deployment"), nil, "carries Deployment.example.io shop/web, which is not of this binding"},
		"of no binding":                                  {"", other, nil, nil, "carries Deployment.example.io shop/web"},
		"of no binding, with the same object":            {"", own, nil, nil, ""},
		"of an earlier binding of the same name":         {"id-0", own, led("shop", "web-deployment"), nil, ""},
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
			w := newWorld(t, append(tc.bindings, cluster("m1"), deployment(), bindingTo("m1"), stored)...)
			w.pass()
			taken := string(w.works()[0].Spec.Workload.Manifests[0].Raw) != tc.manifest
			said := w.failures.Of(bindingTo().UID)["m1"]
			if taken != (tc.says == "") || !strings.Contains(said, tc.says) {
				t.Errorf("taken: %v, the binding says %q, want %q", taken, said, tc.says)
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
