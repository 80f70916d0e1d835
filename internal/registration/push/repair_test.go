package push

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// joined is a Cluster with its Secrets as join stores them.
func joined(acting, impersonating string) []client.Object {
	cluster := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	cluster.UID = "uid of east"
	cluster.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"}
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east-impersonator"}
	objects := []client.Object{&cluster}
	for name, token := range map[string]string{"east": acting, "east-impersonator": impersonating} {
		if token == "" {
			continue
		}
		secret := sidetest.Secret(name)
		secret.Data = map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(token), clusterv1alpha1.SecretCADataKey: []byte("stored CA")}
		objects = append(objects, secret)
	}
	return objects
}

// memberAccepting is an API server that accepts tokens beginning with fine.
func memberAccepting(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer fine") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func clusterOf(t *testing.T, karmada *side.Side) *clusterv1alpha1.Cluster {
	t.Helper()
	have, err := karmada.Get(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}})
	if err != nil {
		t.Fatal(err)
	}
	return have.(*clusterv1alpha1.Cluster)
}

func TestWhatIsWrongWithTheCredentialsOfARegisteredCluster(t *testing.T) {
	tests := map[string]struct {
		acting, impersonating string
		change                func(*clusterv1alpha1.Cluster)
		want                  []string
		reissue               grant.Reported
	}{
		"nothing": {acting: "fine", impersonating: "fine"},
		"the token was revoked": {
			acting: "revoked", impersonating: "fine", reissue: grant.Reported{Credentials: true},
			want: []string{`it refuses the token in Secret ns/east`},
		},
		"the Secret of the impersonator is gone": {
			acting: "fine", reissue: grant.Reported{Impersonator: true}, want: []string{"Secret ns/east-impersonator is gone"},
		},
		"both Secrets are gone": {
			reissue: grant.ReportAll(), want: []string{"Secret ns/east is gone", "Secret ns/east-impersonator is gone"},
		},
		"the Cluster refers to no Secret": {
			acting: "fine", impersonating: "fine", reissue: grant.Reported{Credentials: true}, want: []string{"spec.secretRef of the Cluster is empty"},
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = nil },
		},
		"a cluster without an impersonator needs none": {
			acting: "fine", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = nil },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			karmada := sidetest.With(t, "", joined(test.acting, test.impersonating)...)
			cluster := clusterOf(t, karmada)
			if test.change != nil {
				test.change(cluster)
			}
			found, err := Join{Name: "east", ClusterNamespace: "ns", Member: memberAccepting(t)}.examine(t.Context(), karmada, sidetest.With(t, ""), cluster)
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
	}
}

func TestJoiningAgainChangesNothingWhileTheCredentialsWork(t *testing.T) {
	karmada, member := sidetest.With(t, "", joined("fine", "fine")...), sidetest.With(t, "")
	taken := &registration.RegisteredError{Name: "east", ID: "id", By: *clusterOf(t, karmada)}
	err := Join{Name: "east", ClusterNamespace: "ns", Member: memberAccepting(t)}.repair(t.Context(), karmada, member, taken)
	if !errors.Is(err, taken) {
		t.Errorf("got %v, want that it is registered", err)
	}
	if diff := cmp.Diff([]string(nil), sidetest.Content(t, member)); diff != "" {
		t.Errorf("the member holds (-want +got):\n%s", diff)
	}
}

func TestARepairStoresTheNewTokensWhereTheClusterLooksForThem(t *testing.T) {
	karmada := sidetest.With(t, "", joined("revoked", "fine and old")...)
	cluster := clusterOf(t, karmada)
	join := Join{Name: "east", ClusterNamespace: "elsewhere", Member: memberAccepting(t)}
	found, err := join.examine(t.Context(), karmada, sidetest.With(t, ""), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := join.renew(t.Context(), karmada, found, grant.Access{Token: []byte("new"), CA: []byte("new CA")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"east": "new", "east-impersonator": "fine and old"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := karmada.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "east"}, secret); err != nil {
		t.Fatal(err)
	}
	// The kubeconfig leads to the member by another address than the Cluster has.
	if got := string(secret.Data[clusterv1alpha1.SecretCADataKey]); got != "stored CA" {
		t.Errorf("the CA is %q, want the one of the address of the Cluster", got)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != cluster.UID {
		t.Errorf("its owner is %v", owner)
	}
}

func TestADryRunOfARepairChangesNothing(t *testing.T) {
	karmada := sidetest.With(t, "", joined("revoked", "fine")...)
	var logged []string
	join := Join{Name: "east", ClusterNamespace: "ns", DryRun: true, Member: memberAccepting(t), Log: func(format string, args ...any) {
		logged = append(logged, fmt.Sprintf(format, args...))
	}}
	member := sidetest.With(t, "")
	karmada.DryRun, member.DryRun = true, true
	taken := &registration.RegisteredError{Name: "east", ID: "id", By: *clusterOf(t, karmada)}
	if err := join.repair(t.Context(), karmada, member, taken); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"east": "revoked", "east-impersonator": "fine"}, tokens(t, karmada)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	want := []string{
		"Cluster \"east\" is this cluster, and its credentials do not work:\n- it refuses the token in Secret ns/east",
		"would store a new token in Secret ns/east in it",
	}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

func TestWhichRegistrationsJoinRepairs(t *testing.T) {
	leaving := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = leaving.DeletionTimestamp.AddDate(1, 0, 0)
	tests := map[string]struct {
		by   clusterv1alpha1.Cluster
		want bool
	}{
		"of the same cluster":       {sidetest.Registered("east", "id", clusterv1alpha1.Push), true},
		"of another cluster":        {sidetest.Registered("east", "another", clusterv1alpha1.Push), false},
		"under another name":        {sidetest.Registered("west", "id", clusterv1alpha1.Push), false},
		"of a cluster in Pull mode": {sidetest.Registered("east", "id", clusterv1alpha1.Pull), false},
		"that is being deleted":     {leaving, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := repairable(&registration.RegisteredError{Name: "east", ID: "id", By: test.by}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if _, got := repairable(errors.New("no answer")); got {
		t.Error("an error that is none of a registration")
	}
}
