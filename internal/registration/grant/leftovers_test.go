package grant

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

func TestCleaningUpAMember(t *testing.T) {
	joined := func(name string) []client.Object {
		own := registration.Account("ns", AccountName(name))
		return []client.Object{own, TokenRequest(own), Role(name), RoleBinding(name, "ns")}
	}
	shared := func(labelled bool) []client.Object {
		ns := registration.Namespace("ns")
		if !labelled {
			ns.Labels = nil
		}
		common := registration.Account("ns", Impersonator)
		return []client.Object{ns, common, TokenRequest(common)}
	}
	tests := map[string]struct {
		before [][]client.Object
		want   []string
	}{
		"everything goes with the last control plane": {before: [][]client.Object{shared(true), joined("east")}},
		"nothing is there any more":                   {},
		"a namespace that joining did not make stays": {
			before: [][]client.Object{shared(false), joined("east")},
			want:   []string{"Namespace ns"},
		},
		"a namespace with something else in it stays": {
			before: [][]client.Object{shared(true), joined("east"), {sidetest.Secret("mine")}},
			want:   []string{"Namespace ns", "Secret ns/mine"},
		},
		"a namespace in which somebody runs something stays": {
			before: [][]client.Object{shared(true), joined("east"), {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}}},
			want:   []string{"Namespace ns"},
		},
		"another control plane keeps its access": {
			before: [][]client.Object{shared(true), joined("east"), joined("other")},
			want: []string{
				"ClusterRole karmada-controller-manager:karmada-other", "ClusterRoleBinding karmada-controller-manager:karmada-other",
				"Namespace ns", "Secret ns/karmada-impersonator", "Secret ns/karmada-other",
				"ServiceAccount ns/karmada-impersonator", "ServiceAccount ns/karmada-other",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := sidetest.With(t, "", slices.Concat(test.before...)...)
			left := Leftovers{Cluster: "east", Namespace: "ns", Log: t.Logf}
			if err := left.Delete(t.Context(), member); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, sidetest.Content(t, member), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
