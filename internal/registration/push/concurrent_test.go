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
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
	"karmada.io/karmada/internal/registration/enroll"
)

// storedTokens returns the tokens in the Secrets to which the client s has access, by the Secret's name.
func storedTokens(t *testing.T, s *clusterclient.Client) map[string]string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := s.API.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	for _, each := range secrets.Items {
		tokens[each.Name] = string(each.Data[clusterv1alpha1.SecretTokenKey])
	}
	return tokens
}

func TestConcurrentJoinKeepsSecretsOfRegisteredCluster(t *testing.T) {
	first := clusterclienttest.NewCluster("east", "the first", clusterv1alpha1.Push)
	first.UID = "uid of the first"
	karmada := clusterclienttest.NewClient(t, "", &first)
	credentials := enroll.Credentials{Token: []byte("first"), ImpersonatorToken: []byte("first")}
	credentialsSecret, impersonatorSecret := credentials.Secrets("east", "ns")
	for _, secret := range []*corev1.Secret{credentialsSecret, impersonatorSecret} {
		if err := enroll.EnsureSecret(t.Context(), karmada, secret, &first); err != nil {
			t.Fatal(err)
		}
	}
	// The second join has listed the Clusters before the first Cluster was created.
	second := clusterclienttest.NewCluster("east", "the second", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &second, enroll.Credentials{Token: []byte("second"), ImpersonatorToken: []byte("second")})
	var registered *registration.RegisteredError
	if !errors.As(err, &registered) || registered.Existing.Spec.ID != "the first" {
		t.Errorf("the second join returned %v, want an error that names the first", err)
	}
	if diff := cmp.Diff(map[string]string{"east": "first", "east-impersonator": "first"}, storedTokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestConcurrentJoinUnderTwoNames(t *testing.T) {
	karmada, member := clusterclienttest.NewClient(t, ""), clusterclienttest.NewClient(t, "")
	inner := karmada.API
	karmada.API = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if cluster, ok := object.(*clusterv1alpha1.Cluster); ok {
				other := clusterclienttest.NewCluster("west", cluster.Spec.ID, clusterv1alpha1.Push)
				if err := inner.Create(ctx, &other); err != nil {
					return err
				}
			}
			return api.Create(ctx, object, options...)
		},
	})
	wanted := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	err := Join{Name: "east", ClusterNamespace: "ns"}.register(t.Context(), karmada, &wanted, enroll.Credentials{Token: []byte("t"), ImpersonatorToken: []byte("t")})
	var registered *registration.RegisteredError
	if !errors.As(err, &registered) || registered.Existing.Name != "west" {
		t.Errorf("join returned %v, want an error that names the other Cluster", err)
	}
	if err := rollBack(t.Context(), karmada, member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Cluster west"}, clusterclienttest.ListContent(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestConcurrentJoinStoresSecretsOfClusterOwner(t *testing.T) {
	karmada := clusterclienttest.NewClient(t, "")
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
	wanted := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	if err := (Join{Name: "east", ClusterNamespace: "ns"}).register(t.Context(), karmada, &wanted, enroll.Credentials{Token: []byte("mine"), ImpersonatorToken: []byte("mine")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"east": "mine", "east-impersonator": "mine"}, storedTokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestUnjoinAfterInterruptedJoin(t *testing.T) {
	newSecrets := func(owners ...metav1.OwnerReference) []client.Object {
		credentialsSecret, impersonatorSecret := enroll.Credentials{}.Secrets("east", "ns")
		credentialsSecret.OwnerReferences, impersonatorSecret.OwnerReferences = owners, owners
		return []client.Object{credentialsSecret, impersonatorSecret}
	}
	unlabelled := clusterclienttest.NewSecret("east")
	deleted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"},
	}}
	tests := map[string]struct {
		before  []client.Object
		deleted *clusterv1alpha1.Cluster
		want    []string
	}{
		"Secrets without an owner are deleted":                     {before: newSecrets()},
		"Secrets that the deleted Cluster referred to are deleted": {before: newSecrets(), deleted: deleted},
		"Secrets with an owner are left to garbage collection":     {before: newSecrets(metav1.OwnerReference{Kind: "Cluster", Name: "east", UID: "x"}), want: []string{"Secret ns/east", "Secret ns/east-impersonator"}},
		"a Secret without the system label stays":                  {before: []client.Object{unlabelled}, want: []string{"Secret ns/east"}},
		"no Secrets": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := clusterclienttest.NewClient(t, "", test.before...)
			unjoin := Unjoin{Name: "east", ClusterNamespace: "ns", Force: true, Log: t.Logf}
			if found, err := unjoin.findCluster(t.Context(), karmada); found != nil || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			if err := unjoin.deleteOrphanedSecrets(t.Context(), karmada, test.deleted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, clusterclienttest.ListContent(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
