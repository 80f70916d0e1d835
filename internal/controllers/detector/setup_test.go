package detector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestClaimLookupOfAssembledDetector(t *testing.T) {
	held := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	everywhere := newClusterPropagationPolicy("base")
	everywhere.Spec.ResourceSelectors[0].Namespace = ""
	tests := map[string]struct {
		existing  []client.Object
		version   string
		namespace string
		want      string
	}{
		"a policy selects it":               {existing: []client.Object{newClusterPropagationPolicy("base")}, want: "id-base"},
		"its kind is not watched":           {existing: []client.Object{propagationPolicy("all")}, version: "v1beta1"},
		"its namespace is never propagated": {existing: []client.Object{everywhere}, namespace: "karmada-system"},
		"a binding of its name exists":      {existing: []client.Object{propagationPolicy("all"), held}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, object := newFixture(t, test.existing...), deployment(2)
			kind := deployments
			if test.version != "" {
				kind = schema.GroupVersionKind{Group: kind.Group, Version: test.version, Kind: kind.Kind}
			}
			if test.namespace != "" {
				object.SetNamespace(test.namespace)
			}
			claim, ok := h.lookup.claim(t.Context(), kind, object)
			if claim.ID != test.want || ok != (test.want != "") {
				t.Errorf("claim %q, %t, want %q", claim.ID, ok, test.want)
			}
		})
	}
}
