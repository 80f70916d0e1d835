package push

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// tokens are what the Secrets of a cluster hold.
func tokens(t *testing.T, s *side.Side) map[string]string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := s.API.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, each := range secrets.Items {
		held[each.Name] = string(each.Data[clusterv1alpha1.SecretTokenKey])
	}
	return held
}

func TestAClusterThatIsRegisteredKeepsItsSecretsFromOneThatJoinsUnderItsName(t *testing.T) {
	first := sidetest.Registered("east", "the first", clusterv1alpha1.Push)
	first.UID = "uid of the first"
	karmada := sidetest.With(t, "", &first)
	credentials := grant.Access{Token: []byte("first"), ImpersonatorToken: []byte("first")}
	acting, impersonating := credentials.Secrets("east", "ns")
	for _, secret := range []*corev1.Secret{acting, impersonating} {
		if err := grant.Keep(t.Context(), karmada, secret, &first); err != nil {
			t.Fatal(err)
		}
	}
	// The second one has looked for the name before the first one had it.
	second := sidetest.Registered("east", "the second", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &second, grant.Access{Token: []byte("second"), ImpersonatorToken: []byte("second")})
	var taken *registration.RegisteredError
	if !errors.As(err, &taken) || taken.By.Spec.ID != "the first" {
		t.Errorf("the second one ended with %v, want an error that names the first", err)
	}
	if diff := cmp.Diff(map[string]string{"east": "first", "east-impersonator": "first"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestOfTwoNamesForAClusterThatWereTakenAtOnceOneGivesWay(t *testing.T) {
	karmada, member := sidetest.With(t, ""), sidetest.With(t, "")
	inner := karmada.API
	karmada.API = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if cluster, ok := object.(*clusterv1alpha1.Cluster); ok {
				other := sidetest.Registered("west", cluster.Spec.ID, clusterv1alpha1.Push)
				if err := inner.Create(ctx, &other); err != nil {
					return err
				}
			}
			return api.Create(ctx, object, options...)
		},
	})
	wanted := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &wanted, grant.Access{Token: []byte("t"), ImpersonatorToken: []byte("t")})
	var taken *registration.RegisteredError
	if !errors.As(err, &taken) || taken.By.Name != "west" {
		t.Errorf("joining ended with %v, want an error that names the other Cluster", err)
	}
	if err := undo(t.Context(), karmada, member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Cluster west"}, sidetest.Content(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestOfTwoThatJoinAtOnceTheOneWithTheClusterHasItsSecrets(t *testing.T) {
	karmada := sidetest.With(t, "")
	inner := karmada.API
	karmada.API = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*clusterv1alpha1.Cluster); ok {
				other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "east"}}
				if err := inner.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
					return err
				}
				other.Data = map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("of another")}
				if err := inner.Update(ctx, other); err != nil {
					return err
				}
			}
			return api.Create(ctx, object, options...)
		},
	})
	wanted := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	if err := (Join{Name: "east", ClusterNamespace: "ns"}).register(t.Context(), karmada, &wanted, grant.Access{Token: []byte("mine"), ImpersonatorToken: []byte("mine")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"east": "mine", "east-impersonator": "mine"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestUnjoiningAfterARunThatWasKilled(t *testing.T) {
	held := func(owners ...metav1.OwnerReference) []client.Object {
		acting, impersonating := grant.Access{}.Secrets("east", "ns")
		acting.OwnerReferences, impersonating.OwnerReferences = owners, owners
		return []client.Object{acting, impersonating}
	}
	unlabelled := sidetest.Secret("east")
	of := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"},
	}}
	tests := map[string]struct {
		before []client.Object
		of     *clusterv1alpha1.Cluster
		want   []string
	}{
		"credentials that belong to no Cluster go":         {before: held()},
		"those that the Cluster that is gone referred to":  {before: held(), of: of},
		"those of a Cluster go with it":                    {before: held(metav1.OwnerReference{Kind: "Cluster", Name: "east", UID: "x"}), want: []string{"Secret ns/east", "Secret ns/east-impersonator"}},
		"a Secret of that name that joining did not store": {before: []client.Object{unlabelled}, want: []string{"Secret ns/east"}},
		"nothing is left":                                  {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := sidetest.With(t, "", test.before...)
			unjoin := Unjoin{Name: "east", ClusterNamespace: "ns", Force: true, Log: t.Logf}
			if found, err := unjoin.find(t.Context(), karmada); found != nil || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			if err := unjoin.forget(t.Context(), karmada, test.of); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, sidetest.Content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
