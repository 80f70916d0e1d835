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
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

func TestCleanup(t *testing.T) {
	joined := func(name string) []client.Object {
		account := registration.NewServiceAccount("ns", AccountName(name))
		return []client.Object{account, NewTokenSecret(account), NewClusterRole(name), NewClusterRoleBinding(name, "ns")}
	}
	shared := func(labelled bool) []client.Object {
		ns := registration.NewNamespace("ns")
		if !labelled {
			ns.Labels = nil
		}
		impersonator := registration.NewServiceAccount("ns", ImpersonatorAccount)
		return []client.Object{ns, impersonator, NewTokenSecret(impersonator)}
	}
	tests := map[string]struct {
		before [][]client.Object
		want   []string
	}{
		"everything is deleted with the last control plane": {before: [][]client.Object{shared(true), joined("east")}},
		"nothing exists any more":                           {},
		"a namespace that join did not create stays": {
			before: [][]client.Object{shared(false), joined("east")},
			want:   []string{"Namespace ns"},
		},
		"a namespace with another Secret stays": {
			before: [][]client.Object{shared(true), joined("east"), {clusterclienttest.NewSecret("mine")}},
			want:   []string{"Namespace ns", "Secret ns/mine"},
		},
		"a namespace with a Pod stays": {
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
			member := clusterclienttest.NewClient(t, "", slices.Concat(test.before...)...)
			cleanup := Cleanup{Cluster: "east", Namespace: "ns", Log: t.Logf}
			if err := cleanup.Run(t.Context(), member); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, clusterclienttest.ListContent(t, member), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
