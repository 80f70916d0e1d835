package push

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// These tests check which requests are made and in what order; how an API server
// answers them is for the integration tests.

func TestRegisteringIsUndoneByWhatItMadeItself(t *testing.T) {
	tests := map[string]struct {
		refused sidetest.Refusal
		before  []client.Object
		want    []string // what is there afterwards
		fails   bool
	}{
		"all goes well": {
			want: []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"what an earlier run left is used": {
			before: []client.Object{registration.Namespace("ns"), sidetest.Secret("east"), sidetest.Secret("east-impersonator")},
			want:   []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"the last secret is refused: nothing remains": {
			refused: "east", fails: true,
		},
		"what was there before remains": {
			refused: "east", fails: true,
			before: []client.Object{registration.Namespace("ns"), sidetest.Secret("east-impersonator")},
			want:   []string{"Namespace ns", "Secret ns/east-impersonator"},
		},
		"a namespace that others use by now remains": {
			refused: "east", fails: true,
			before: []client.Object{sidetest.Secret("west")},
			want:   []string{"Namespace ns", "Secret ns/west"},
		},
		"the secret of another Cluster is not taken": {
			before: []client.Object{registration.Namespace("ns"), sidetest.Secret("east-impersonator", metav1.OwnerReference{Kind: "Cluster", Name: "east-impersonator"})},
			want:   []string{"Namespace ns", "Secret ns/east-impersonator"},
			fails:  true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada, member := sidetest.With(t, test.refused, test.before...), sidetest.With(t, "")
			join := Join{Name: "east", ClusterNamespace: "ns"}
			wanted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			err := join.register(t.Context(), karmada, wanted, grant.Access{Token: []byte("t")})
			if (err != nil) != test.fails {
				t.Fatalf("registering: %v", err)
			}
			if err != nil {
				if err := undo(t.Context(), karmada, member); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, sidetest.Content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheClusterOwnsItsSecrets(t *testing.T) {
	karmada := sidetest.With(t, "")
	join := Join{Name: "east", ClusterNamespace: "ns"}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, grant.Access{}); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := karmada.API.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		owner := metav1.GetControllerOf(&s)
		if owner == nil || owner.Kind != "Cluster" || owner.UID != "uid of east" || owner.APIVersion != "cluster.karmada.io/v1alpha1" {
			t.Errorf("controller of Secret %s is %+v", s.Name, owner)
		}
	}
}

func TestUndoGoesOnWhenTheCallerHasGivenUp(t *testing.T) {
	karmada, member := sidetest.With(t, ""), sidetest.With(t, "")
	if _, err := member.Ensure(t.Context(), registration.Account("ns", "karmada-east"), func(client.Object) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := undo(ctx, karmada, member); err != nil {
		t.Fatal(err)
	}
	if left := sidetest.Content(t, member); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADryRunTellsAndChangesNothing(t *testing.T) {
	karmada, member := sidetest.With(t, ""), sidetest.With(t, "", grant.Role("east"))
	var told []string
	log := registration.Log(func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) })
	karmada.DryRun, member.DryRun, karmada.Log, member.Log = true, true, log, log
	join := Join{Name: "east", ClusterNamespace: "ns", DryRun: true}
	before := sidetest.Content(t, member)
	credentials, err := join.grantAccess(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, credentials); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{before, nil}, [][]string{sidetest.Content(t, member), sidetest.Content(t, karmada)}); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	for _, line := range told {
		if !strings.HasPrefix(line, "would ") {
			t.Errorf("told %q", line)
		}
	}
	if !slices.Contains(told, "would reuse ClusterRole karmada-controller-manager:karmada-east in it") || !slices.Contains(told, "would create Cluster east in it") {
		t.Errorf("told %q", told)
	}
}

func TestUnjoiningFindsTheCluster(t *testing.T) {
	push, pull := sidetest.Registered("east", "id", clusterv1alpha1.Push), sidetest.Registered("agent", "id", clusterv1alpha1.Pull)
	protected := sidetest.Registered("vault", "id", clusterv1alpha1.Push)
	protected.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	karmada := sidetest.With(t, "", &push, &pull, &protected)
	tests := map[string]string{
		"east":  "",
		"west":  `there is no Cluster "west" in it (https://it); with --force what a run that was interrupted has left of it is deleted`,
		"agent": `cluster "agent" is in Pull mode: use unregister`,
		"vault": `cluster "vault": This resource is protected: to delete it, first remove its label resourcetemplate.karmada.io/deletion-protected=Always`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := (Unjoin{Name: name}).find(t.Context(), karmada); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestUnjoinNamesWhatStaysInAMemberThatItDoesNotReach(t *testing.T) {
	for name, dryRun := range map[string]bool{"a dry run": true, "a run": false} {
		t.Run(name, func(t *testing.T) {
			var told []string
			unjoin := Unjoin{Name: "far", ClusterNamespace: "ns", DryRun: dryRun, Log: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}
			far := sidetest.Registered("far", "id", clusterv1alpha1.Push)
			if err := unjoin.remove(t.Context(), sidetest.With(t, "", &far), nil, &far); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(told, "\n")
			for _, want := range []string{
				"ServiceAccount ns/karmada-far", "ServiceAccount ns/karmada-impersonator", "ClusterRoleBinding karmada-controller-manager:karmada-far",
				"unjoin far --force --cluster-kubeconfig=<kubeconfig of far>",
			} {
				if !strings.Contains(all, want) {
					t.Errorf("told %q, not %q", all, want)
				}
			}
		})
	}
}

func TestWhatIsNotTheClusterIsNotCleanedUp(t *testing.T) {
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/kube-system" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"id"}}`)
	}))
	t.Cleanup(member.Close)
	for _, force := range []bool{false, true} {
		unjoin := Unjoin{Name: "east", Force: force, Member: &rest.Config{Host: member.URL}, Log: t.Logf}
		itself, another, unknown := sidetest.Registered("east", "id", clusterv1alpha1.Push), sidetest.Registered("east", "another", clusterv1alpha1.Push), sidetest.Registered("east", "", clusterv1alpha1.Push)
		if opened, err := unjoin.member(t.Context(), nil, &itself); err != nil || opened == nil {
			t.Errorf("the cluster itself: %v", err)
		}
		for want, cluster := range map[string]*clusterv1alpha1.Cluster{
			`Cluster "east" has another; choose the right context`: &another,
			`has ID id, and spec.id of the Cluster is empty`:       &unknown,
		} {
			if _, err := unjoin.member(t.Context(), nil, cluster); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	// By force, and without a Cluster of that name.
	west := sidetest.Registered("west", "id", clusterv1alpha1.Push)
	unjoin := Unjoin{Name: "east", Force: true, Member: &rest.Config{Host: member.URL}, Log: t.Logf}
	if _, err := unjoin.member(t.Context(), sidetest.With(t, "", &west), nil); err == nil || !strings.Contains(err.Error(), `leads to Cluster "west"`) {
		t.Errorf("a member that is registered under another name: %v", err)
	}
	if opened, err := unjoin.member(t.Context(), sidetest.With(t, ""), nil); err != nil || opened == nil {
		t.Errorf("a member that is not registered: %v", err)
	}
}

func TestWhatTheControlPlaneHolds(t *testing.T) {
	proxy, err := url.Parse("socks5://proxy:1080")
	if err != nil {
		t.Fatal(err)
	}
	join := Join{
		Name: "east", ClusterNamespace: "ns", Provider: "p", Region: "r", Zones: []string{"z1", "z2"},
		Member: &rest.Config{Host: "https://10.0.0.1:6443", Proxy: http.ProxyURL(proxy), TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
	}
	want := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: "the-id", SyncMode: "Push", APIEndpoint: "https://10.0.0.1:6443",
			SecretRef:                   &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"},
			ImpersonatorSecretRef:       &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east-impersonator"},
			InsecureSkipTLSVerification: true, ProxyURL: "socks5://proxy:1080", Provider: "p", Region: "r", Zones: []string{"z1", "z2"},
		},
	}
	got := join.cluster("the-id")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Cluster (-want +got):\n%s", diff)
	}
	if wrong := cluster.Validate(got); len(wrong) > 0 {
		t.Errorf("the Cluster is not valid: %v", wrong)
	}

	acting, impersonating := grant.Access{Token: []byte("t"), ImpersonatorToken: []byte("i"), CA: []byte("ca")}.Secrets("east", "ns")
	data := map[string]map[string][]byte{acting.Name: acting.Data, impersonating.Name: impersonating.Data}
	wantData := map[string]map[string][]byte{
		"east":              {"token": []byte("t"), "caBundle": []byte("ca")},
		"east-impersonator": {"token": []byte("i")},
	}
	if diff := cmp.Diff(wantData, data); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
}

func TestBadRequestsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	anywhere := &rest.Config{Host: "https://127.0.0.1:1"}
	tests := map[string]struct {
		join Join
		want string
	}{
		"a name that is none":         {Join{Name: "No", Karmada: anywhere, Member: anywhere}, `cluster name "No"`},
		"no way to the member":        {Join{Name: "east", Karmada: anywhere}, `no way to reach member "east" was given`},
		"no way to the control plane": {Join{Name: "east", Member: anywhere}, "no way to reach the control plane was given"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.join.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestLoopbackAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost": true, "https://[::1]:6443": true,
		"https://10.0.0.1": false, "https://east.example": false, "::": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("isLoopback(%q) = %t", address, got)
		}
	}
}
