package registration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// tokens are what the Secrets of a cluster hold.
func tokens(t *testing.T, s *side) map[string]string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := s.api.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, each := range secrets.Items {
		held[each.Name] = string(each.Data[clusterv1alpha1.SecretTokenKey])
	}
	return held
}

func TestAClusterThatIsRegisteredKeepsItsSecretsFromOneThatJoinsUnderItsName(t *testing.T) {
	first := registered("east", "the first", clusterv1alpha1.Push)
	first.UID = "uid of the first"
	karmada := sideWith(t, "", &first)
	credentials := access{token: []byte("first"), impersonatorToken: []byte("first")}
	acting, impersonating := credentials.secrets("east", "ns")
	for _, secret := range []*corev1.Secret{acting, impersonating} {
		if err := karmada.keep(t.Context(), secret, &first); err != nil {
			t.Fatal(err)
		}
	}
	// The second one has looked for the name before the first one had it.
	karmada.made = nil
	second := registered("east", "the second", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &second, access{token: []byte("second"), impersonatorToken: []byte("second")})
	var taken *RegisteredError
	if !errors.As(err, &taken) || taken.By.Spec.ID != "the first" {
		t.Errorf("the second one ended with %v, want an error that names the first", err)
	}
	if diff := cmp.Diff(map[string]string{"east": "first", "east-impersonator": "first"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestOfTwoNamesForAClusterThatWereTakenAtOnceOneGivesWay(t *testing.T) {
	karmada, member := sideWith(t, ""), sideWith(t, "")
	inner := karmada.api
	karmada.api = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if cluster, ok := object.(*clusterv1alpha1.Cluster); ok {
				other := registered("west", cluster.Spec.ID, clusterv1alpha1.Push)
				if err := inner.Create(ctx, &other); err != nil {
					return err
				}
			}
			return api.Create(ctx, object, options...)
		},
	})
	wanted := registered("east", "id", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &wanted, access{token: []byte("t"), impersonatorToken: []byte("t")})
	var taken *RegisteredError
	if !errors.As(err, &taken) || taken.By.Name != "west" {
		t.Errorf("joining ended with %v, want an error that names the other Cluster", err)
	}
	if err := undo(t.Context(), karmada, member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Cluster west"}, content(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestOfTwoThatJoinAtOnceTheOneWithTheClusterHasItsSecrets(t *testing.T) {
	karmada := sideWith(t, "")
	inner := karmada.api
	karmada.api = interceptor.NewClient(inner, interceptor.Funcs{
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
	wanted := registered("east", "id", clusterv1alpha1.Push)
	if err := (Join{Name: "east", ClusterNamespace: "ns"}).register(t.Context(), karmada, &wanted, access{token: []byte("mine"), impersonatorToken: []byte("mine")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"east": "mine", "east-impersonator": "mine"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}
