package detector

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// selectWeb returns a policy that selects one template.
func selectWeb() policy.Object {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		}},
	}
}

func TestNearMissesOfWaitingTemplates(t *testing.T) {
	w := newWaitingTemplates()
	for _, name := range []string{"b", "a"} {
		w.add(newRef(deployments, "shop", name), nil)
		w.add(newRef(deployments, "dev", name), nil)
		w.add(newRef(configMaps, "shop", name), nil)
	}
	if diff := cmp.Diff([]templateRef{newRef(deployments, "shop", "a"), newRef(deployments, "shop", "b")}, w.nearestTemplates(selectWeb())); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
	for i := range 2 * maxNearMisses {
		w.add(newRef(deployments, "shop", fmt.Sprintf("b%d", i)), nil)
	}
	w.add(newRef(deployments, "shop", "wed"), nil)
	got := w.nearestTemplates(selectWeb())
	if len(got) != maxNearMisses || got[0].Key.Name != "wed" {
		t.Errorf("near misses: %d templates, %v first; want at most %d, the nearest first", len(got), got[0], maxNearMisses)
	}
}

func TestSelectorWithMatchHasNoNearMisses(t *testing.T) {
	tests := map[string]struct {
		waiting, claimed []string
		want             []string
	}{
		"the selected object is waiting":       {waiting: []string{"web", "api"}},
		"the object belongs to another policy": {waiting: []string{"api"}, claimed: []string{"web"}},
		"there is no such object":              {waiting: []string{"api"}, claimed: []string{"db"}, want: []string{"Deployment shop/api"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWaitingTemplates()
			p := selectWeb()
			selected := sets.New[templateRef]()
			for _, name := range test.waiting {
				w.add(newRef(deployments, "shop", name), nil)
			}
			for _, filter := range policy.FiltersOf(p) {
				selected.Insert(w.matching(filter)...)
			}
			isClaimed := func(r templateRef) bool { return slices.Contains(test.claimed, r.Key.Name) }
			var got []string
			for _, r := range w.nearMisses(p, selected, isClaimed) {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
		})
	}
}
