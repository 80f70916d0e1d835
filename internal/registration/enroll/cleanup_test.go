package enroll

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

type cleanupTest struct {
	before [][]client.Object
	want   []string
}

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
	tests := map[string]cleanupTest{
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
	ownedBy := func(owners string, objects []client.Object) []client.Object {
		for _, object := range objects {
			annotations := maps.Clone(object.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[clusterv1alpha1.ControlPlaneAnnotation] = owners
			object.SetAnnotations(annotations)
		}
		return objects
	}
	maps.Copy(tests, map[string]cleanupTest{
		"own objects are deleted": {before: [][]client.Object{ownedBy("this", shared(true)), ownedBy("this", joined("east"))}},
		"objects of another control plane that uses the same name stay": {
			before: [][]client.Object{ownedBy("other", shared(true)), ownedBy("other", joined("east"))},
			want: []string{
				"ClusterRole karmada-controller-manager:karmada-east", "ClusterRoleBinding karmada-controller-manager:karmada-east",
				"Namespace ns", "Secret ns/karmada-east", "Secret ns/karmada-impersonator",
				"ServiceAccount ns/karmada-east", "ServiceAccount ns/karmada-impersonator",
			},
		},
		"an impersonator that another control plane uses stays": {
			before: [][]client.Object{ownedBy("other,this", shared(true)), ownedBy("this", joined("east"))},
			want:   []string{"Namespace ns", "Secret ns/karmada-impersonator", "ServiceAccount ns/karmada-impersonator"},
		},
	})
	deliveredBy := func(executionNamespace, controlPlane string) []client.Object {
		role, binding := impersonation.NewRole(impersonation.Subjects{}, controlPlane), impersonation.NewBinding("ns", controlPlane)
		for _, object := range []client.Object{role, binding} {
			annotations := map[string]string{workv1alpha1.WorkNamespaceAnnotation: executionNamespace}
			maps.Copy(annotations, object.GetAnnotations())
			object.SetAnnotations(annotations)
		}
		return []client.Object{role, binding}
	}
	impersonators := []string{"ClusterRole karmada-impersonator", "ClusterRoleBinding karmada-impersonator"}
	maps.Copy(tests, map[string]cleanupTest{
		"what a Work of the cluster delivered is deleted":                    {before: [][]client.Object{joined("east"), deliveredBy("karmada-es-east", "this")}},
		"what a Work of an earlier version delivered is deleted":             {before: [][]client.Object{joined("east"), deliveredBy("karmada-es-east", "")}},
		"what a Work of another cluster delivered stays":                     {before: [][]client.Object{joined("east"), deliveredBy("karmada-es-west", "this")}, want: impersonators},
		"what another control plane's Work of an equal name delivered stays": {before: [][]client.Object{joined("east"), deliveredBy("karmada-es-east", "other")}, want: impersonators},
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := clusterclienttest.NewClient(t, "", slices.Concat(test.before...)...)
			member.Owner = "this"
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

// TestTwoControlPlanesInOneMember plays the life of a member of two control planes.
func TestTwoControlPlanesInOneMember(t *testing.T) {
	member := clusterclienttest.NewClient(t, "")
	of := func(owner, cluster string) (Grant, Cleanup) {
		view := &clusterclient.Client{Name: "it", Host: "https://it", Log: t.Logf, API: member.API, NamespacedKinds: member.NamespacedKinds, Owner: owner}
		return Grant{Cluster: cluster, Namespace: "ns", Member: view}, Cleanup{Cluster: cluster, Namespace: "ns", Log: t.Logf}
	}
	create := func(g Grant) error {
		keep := func(client.Object) error { return nil }
		impersonator, account := registration.NewServiceAccount("ns", ImpersonatorAccount), registration.NewServiceAccount("ns", AccountName(g.Cluster))
		var errs []error
		for _, shared := range []client.Object{registration.NewNamespace("ns"), impersonator, NewTokenSecret(impersonator)} {
			_, err := g.Member.EnsureShared(t.Context(), shared, keep)
			errs = append(errs, err)
		}
		for _, owned := range []client.Object{account, NewTokenSecret(account)} {
			_, err := g.Member.EnsureOwned(t.Context(), owned, keep)
			errs = append(errs, err)
		}
		return errors.Join(append(errs, g.bindRoles(t.Context()))...)
	}
	first, firstCleanup := of("first", "east")
	if err := create(first); err != nil {
		t.Fatal(err)
	}
	before := clusterclienttest.ListContent(t, member)

	same, sameCleanup := of("second", "east")
	var other *clusterclient.OtherOwnerError
	if err := same.VerifyOwner(t.Context()); !errors.As(err, &other) || other.Other != "first" || len(other.Objects) != 4 {
		t.Errorf("the check of a second control plane with the same name: %v", err)
	}
	for _, want := range []string{"https://it", "ID first", "ID second", "ServiceAccount ns/karmada-east", "--namespace=ns", "serviceaccount/karmada-east", "clusterrole/karmada-controller-manager:karmada-east"} {
		if !strings.Contains(other.Error(), want) {
			t.Errorf("%q does not contain %q", other.Error(), want)
		}
	}
	if err := create(same); !errors.As(err, &other) {
		t.Errorf("a second control plane with the same name: %v", err)
	}
	if err := errors.Join(same.Member.RollBack(t.Context()), sameCleanup.Run(t.Context(), same.Member)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, clusterclienttest.ListContent(t, member)); diff != "" {
		t.Errorf("content after a rejected join and an unjoin (-before +after):\n%s", diff)
	}

	second, secondCleanup := of("second", "west")
	if err := create(second); err != nil {
		t.Fatal(err)
	}
	if err := firstCleanup.Run(t.Context(), first.Member); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ClusterRole karmada-controller-manager:karmada-west", "ClusterRoleBinding karmada-controller-manager:karmada-west",
		"Namespace ns", "Secret ns/karmada-impersonator", "Secret ns/karmada-west", "ServiceAccount ns/karmada-impersonator", "ServiceAccount ns/karmada-west",
	}
	if diff := cmp.Diff(want, clusterclienttest.ListContent(t, member)); diff != "" {
		t.Errorf("content after the unjoin of the first control plane (-want +got):\n%s", diff)
	}
	if err := secondCleanup.Run(t.Context(), second.Member); err != nil {
		t.Fatal(err)
	}
	if left := clusterclienttest.ListContent(t, member); len(left) > 0 {
		t.Errorf("remaining objects: %v", left)
	}
}

func TestUnmarkedObjectsAreAdopted(t *testing.T) {
	account := registration.NewServiceAccount("ns", AccountName("east"))
	member := clusterclienttest.NewClient(t, "", account.DeepCopy())
	member.Owner = "this"
	stored, err := member.EnsureOwned(t.Context(), account, func(client.Object) error { return nil })
	if err != nil || stored.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation] != "this" {
		t.Fatalf("got %v, %v", stored, err)
	}
	// A failed join leaves the account as it was.
	if err := member.RollBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if have, err := member.Get(t.Context(), account); err != nil || len(have.GetAnnotations()) > 0 {
		t.Errorf("after the rollback: %v, %v", have, err)
	}
}
