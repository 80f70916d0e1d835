package push

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
	"karmada.io/karmada/internal/registration/enroll"
)

// newJoinedCluster returns a Cluster and its Secrets in the form in which join stores them.
func newJoinedCluster(credentials, impersonator string) []client.Object {
	cluster := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	cluster.UID = "uid of east"
	cluster.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"}
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east-impersonator"}
	objects := []client.Object{&cluster}
	for name, token := range map[string]string{"east": credentials, "east-impersonator": impersonator} {
		if token == "" {
			continue
		}
		secret := clusterclienttest.NewSecret(name)
		secret.Data = map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(token), clusterv1alpha1.SecretCADataKey: []byte("stored CA")}
		objects = append(objects, secret)
	}
	return objects
}

// newMemberServer starts an API server that accepts the tokens that begin with "fine".
func newMemberServer(t *testing.T) *rest.Config {
	t.Helper()
	return clusterclienttest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer fine") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
}

func getCluster(t *testing.T, karmada *clusterclient.Client) *clusterv1alpha1.Cluster {
	t.Helper()
	have, err := karmada.Get(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}})
	if err != nil {
		t.Fatal(err)
	}
	return have.(*clusterv1alpha1.Cluster)
}

func TestCheckCredentials(t *testing.T) {
	tests := map[string]struct {
		credentials, impersonator string
		change                    func(*clusterv1alpha1.Cluster)
		want                      []string
		reissue                   enroll.ReportedAccounts
	}{
		"valid credentials": {credentials: "fine", impersonator: "fine"},
		"a revoked token": {
			credentials: "revoked", impersonator: "fine", reissue: enroll.ReportedAccounts{Credentials: true},
			want: []string{`it rejects the token in Secret ns/east`},
		},
		"the impersonator Secret is missing": {
			credentials: "fine", reissue: enroll.ReportedAccounts{Impersonator: true}, want: []string{"Secret ns/east-impersonator is gone"},
		},
		"both Secrets are missing": {
			reissue: enroll.AllAccounts(), want: []string{"Secret ns/east is gone", "Secret ns/east-impersonator is gone"},
		},
		"the Cluster refers to no Secret": {
			credentials: "fine", impersonator: "fine", reissue: enroll.ReportedAccounts{Credentials: true}, want: []string{"spec.secretRef of the Cluster is empty"},
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = nil },
		},
		"a Cluster without an impersonator": {
			credentials: "fine", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = nil },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				karmada := clusterclienttest.NewClient(t, "", newJoinedCluster(test.credentials, test.impersonator)...)
				cluster := getCluster(t, karmada)
				if test.change != nil {
					test.change(cluster)
				}
				found, err := Join{Name: "east", ClusterNamespace: "ns", Member: newMemberServer(t)}.verifyCredentials(t.Context(), karmada, clusterclienttest.NewClient(t, ""), cluster)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, found.causes); diff != "" {
					t.Errorf("causes (-want +got):\n%s", diff)
				}
				if found.reissue != test.reissue {
					t.Errorf("reissued are %+v, want %+v", found.reissue, test.reissue)
				}
			})
		})
	}
}

func TestRejoinWithValidCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada, member := clusterclienttest.NewClient(t, "", newJoinedCluster("fine", "fine")...), clusterclienttest.NewClient(t, "")
		registered := &registration.RegisteredError{Name: "east", ID: "id", Existing: *getCluster(t, karmada)}
		err := Join{Name: "east", ClusterNamespace: "ns", Member: newMemberServer(t)}.repair(t.Context(), karmada, member, registered)
		if !errors.Is(err, registered) {
			t.Errorf("got %v, want the RegisteredError", err)
		}
		if diff := cmp.Diff([]string(nil), clusterclienttest.ListContent(t, member)); diff != "" {
			t.Errorf("the member holds (-want +got):\n%s", diff)
		}
	})
}

func TestRepairStoresTokensInReferencedSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := clusterclienttest.NewClient(t, "", newJoinedCluster("revoked", "fine and old")...)
		cluster := getCluster(t, karmada)
		join := Join{Name: "east", ClusterNamespace: "elsewhere", Member: newMemberServer(t)}
		found, err := join.verifyCredentials(t.Context(), karmada, clusterclienttest.NewClient(t, ""), cluster)
		if err != nil {
			t.Fatal(err)
		}
		if err := join.storeCredentials(t.Context(), karmada, found, enroll.Credentials{Token: []byte("new"), CA: []byte("new CA")}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"east": "new", "east-impersonator": "fine and old"}, storedTokens(t, karmada)); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
		secret := &corev1.Secret{}
		if err := karmada.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "east"}, secret); err != nil {
			t.Fatal(err)
		}
		// The address in the kubeconfig differs from the Cluster's address.
		if got := string(secret.Data[clusterv1alpha1.SecretCADataKey]); got != "stored CA" {
			t.Errorf("the CA is %q, want the one of the address of the Cluster", got)
		}
		if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != cluster.UID {
			t.Errorf("its owner is %v", owner)
		}
	})
}

func TestRepairDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := clusterclienttest.NewClient(t, "", newJoinedCluster("revoked", "fine")...)
		var logged []string
		join := Join{Name: "east", ClusterNamespace: "ns", DryRun: true, Member: newMemberServer(t), Log: func(format string, args ...any) {
			logged = append(logged, fmt.Sprintf(format, args...))
		}}
		member := clusterclienttest.NewClient(t, "")
		karmada.DryRun, member.DryRun = true, true
		registered := &registration.RegisteredError{Name: "east", ID: "id", Existing: *getCluster(t, karmada)}
		if err := join.repair(t.Context(), karmada, member, registered); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"east": "revoked", "east-impersonator": "fine"}, storedTokens(t, karmada)); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
		want := []string{
			"Cluster \"east\" is this cluster, but its credentials do not work:\n- it rejects the token in Secret ns/east",
			"would store a new token in Secret ns/east in it",
		}
		if diff := cmp.Diff(want, logged); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	})
}

func TestAsRepairable(t *testing.T) {
	terminating := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	terminating.DeletionTimestamp = &metav1.Time{}
	terminating.DeletionTimestamp.Time = terminating.DeletionTimestamp.AddDate(1, 0, 0)
	tests := map[string]struct {
		by   clusterv1alpha1.Cluster
		want bool
	}{
		"the same cluster":                {clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push), true},
		"another cluster":                 {clusterclienttest.NewCluster("east", "another", clusterv1alpha1.Push), false},
		"another name":                    {clusterclienttest.NewCluster("west", "id", clusterv1alpha1.Push), false},
		"a cluster in pull mode":          {clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Pull), false},
		"a Cluster that is being deleted": {terminating, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := asRepairable(&registration.RegisteredError{Name: "east", ID: "id", Existing: test.by}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if _, got := asRepairable(errors.New("no answer")); got {
		t.Error("an unrelated error is repairable")
	}
}
