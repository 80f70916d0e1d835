package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

func registered(name, id string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode},
	}
}

func TestAClusterHasOneName(t *testing.T) {
	existing := []clusterv1alpha1.Cluster{
		registered("west", "id-1", clusterv1alpha1.Push), registered("east", "id-2", clusterv1alpha1.Push), registered("pulled", "id-3", clusterv1alpha1.Pull),
	}
	tests := map[string]struct {
		name, id string
		want     string
		same     bool
	}{
		"neither name nor cluster is known": {name: "north", id: "id-4"},
		"the very same cluster is registered": {
			name: "east", id: "id-2", same: true,
			want: `the cluster ID id-2 or the cluster name east has been registered: Cluster "east" is this very cluster, in Push mode; it is registered and nothing was changed`,
		},
		"the very same cluster is registered by its agent": {
			name: "pulled", id: "id-3", same: true,
			want: `the cluster ID id-3 or the cluster name pulled has been registered: Cluster "pulled" is this very cluster, in Pull mode; it is registered and nothing was changed`,
		},
		"the name is another cluster's": {
			name: "east", id: "id-4",
			want: `the cluster ID id-4 or the cluster name east has been registered: Cluster "east" is another cluster, with ID id-2; choose another name, or unjoin that one first`,
		},
		"the cluster has another name": {
			name: "north", id: "id-2",
			want: `the cluster ID id-2 or the cluster name north has been registered: this cluster is registered as Cluster "east"; use that one, or unjoin it first`,
		},
		"of two in the way the name counts first": {
			name: "east", id: "id-1",
			want: `the cluster ID id-1 or the cluster name east has been registered: Cluster "east" is another cluster, with ID id-2; choose another name, or unjoin that one first`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := refuseDuplicate(existing, test.name, test.id)
			if test.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var taken *RegisteredError
			if !errors.As(err, &taken) {
				t.Fatalf("got %v, want a RegisteredError", err)
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
			if taken.Same() != test.same {
				t.Errorf("Same() = %t", taken.Same())
			}
		})
	}
}

func TestNamesOfClusters(t *testing.T) {
	tests := map[string]struct {
		name string
		want string
	}{
		"a DNS label":              {"east-1", ""},
		"48 characters":            {strings.Repeat("a", 48), ""},
		"49 characters":            {strings.Repeat("a", 49), "48"},
		"no name":                  {"", "a cluster has a name"},
		"upper case":               {"East", "RFC 1123 label"},
		"a dot, as in a subdomain": {"east.1", "must not contain dots"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := ValidateName(test.name)
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWhatTheMemberHolds(t *testing.T) {
	system := map[string]string{"karmada.io/system": "true"}
	own := account("karmada-cluster", accountName("east"))
	tests := map[string]struct{ got, want client.Object }{
		"namespace": {namespace("karmada-cluster"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster", Labels: system}}},
		"service account": {own, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-cluster", Name: "karmada-east", Labels: system,
		}}},
		"token secret named like its account": {tokenRequest(own), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-cluster", Name: "karmada-east", Labels: system,
				Annotations: map[string]string{"kubernetes.io/service-account.name": "karmada-east"},
			},
			Type: "kubernetes.io/service-account-token",
		}},
		"role that allows everything": {role("east"), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-east", Labels: system},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
				{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}},
			},
		}},
		"binding of the role": {roleBinding("east", "karmada-cluster"), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-east", Labels: system},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "karmada-controller-manager:karmada-east"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "karmada-cluster", Name: "karmada-east"}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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

	acting, impersonating := access{token: []byte("t"), impersonatorToken: []byte("i"), ca: []byte("ca")}.secrets("east", "ns")
	data := map[string]map[string][]byte{acting.Name: acting.Data, impersonating.Name: impersonating.Data}
	wantData := map[string]map[string][]byte{
		"east":              {"token": []byte("t"), "caBundle": []byte("ca")},
		"east-impersonator": {"token": []byte("i")},
	}
	if diff := cmp.Diff(wantData, data); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
}

func TestEndpointOfAKubeconfig(t *testing.T) {
	for host, want := range map[string]string{
		"https://east:6443": "https://east:6443", "http://east": "http://east", "10.0.0.1:6443": "https://10.0.0.1:6443",
	} {
		if got := endpoint(&rest.Config{Host: host}); got != want {
			t.Errorf("endpoint(%q) = %q, want %q", host, got, want)
		}
	}
}

func TestASecretIsReusedUnlessItServesAnotherCluster(t *testing.T) {
	owner := func(kind, name string) metav1.OwnerReference { return metav1.OwnerReference{Kind: kind, Name: name} }
	current := owner("Cluster", "east")
	current.UID = "now"
	tests := map[string]struct {
		owners, want []metav1.OwnerReference
		uid          types.UID
		refused      string
	}{
		"nobody's":                           {},
		"of the Cluster that is":             {owners: []metav1.OwnerReference{current}, uid: "now", want: []metav1.OwnerReference{current}},
		"of one of the same name before":     {owners: []metav1.OwnerReference{current}, uid: "later"},
		"left by a Cluster of the same name": {owners: []metav1.OwnerReference{owner("Cluster", "east")}},
		"belongs to another Cluster":         {owners: []metav1.OwnerReference{owner("Cluster", "east-impersonator")}, refused: `it belongs to Cluster "east-impersonator"`},
		"others may own it too":              {owners: []metav1.OwnerReference{owner("Vault", "v"), owner("Cluster", "east")}, want: []metav1.OwnerReference{owner("Vault", "v")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mine": "1"}, OwnerReferences: test.owners},
				Data:       map[string][]byte{"token": []byte("old"), "more": nil},
			}
			want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: systemLabels()}, Data: map[string][]byte{"token": []byte("new")}}
			err := adoptSecret(have, want, "east", test.uid)
			if test.refused != "" {
				if err == nil || err.Error() != test.refused {
					t.Fatalf("got %v, want %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, have.OwnerReferences, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Data, have.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"mine": "1", "karmada.io/system": "true"}, have.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExistingTokenSecretMustBeOfTheAccount(t *testing.T) {
	want := tokenRequest(account("ns", "karmada-east"))
	opaque := want.DeepCopy()
	opaque.Type = corev1.SecretTypeOpaque
	foreign := want.DeepCopy()
	foreign.Annotations[corev1.ServiceAccountNameKey] = "default"
	tests := map[string]struct {
		have *corev1.Secret
		want string
	}{
		"of an earlier run":  {want.DeepCopy(), ""},
		"of another type":    {opaque, "it is not of type kubernetes.io/service-account-token"},
		"of another account": {foreign, `it belongs to service account "default"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := fitTokenRequest(test.have, want); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestABindingToAnotherRoleIsNotTaken(t *testing.T) {
	want := roleBinding("east", "ns")
	have := roleBinding("east", "old")
	if err := adoptBinding(have, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Subjects, have.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	have.RoleRef.Name = "view"
	if err := adoptBinding(have, want); err == nil || !strings.Contains(err.Error(), "it grants ClusterRole view") {
		t.Errorf("got %v", err)
	}
}

func TestTheNamespaceStaysForAnotherControlPlane(t *testing.T) {
	accounts := func(names ...string) (all []corev1.ServiceAccount) {
		for _, name := range names {
			all = append(all, *account("karmada-cluster", name))
		}
		return all
	}
	tests := map[string]struct {
		accounts []corev1.ServiceAccount
		want     string
	}{
		"only ours are there":           {accounts("default", "karmada-east", "karmada-impersonator"), ""},
		"ours are gone already":         {accounts("default"), ""},
		"another control plane's":       {accounts("default", "karmada-production", "karmada-impersonator"), "karmada-production"},
		"an account of somebody else's": {accounts("default", "backup"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := otherControlPlane(test.accounts, "east"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAdviceFitsTheError(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	request := func(err error) error { return &url.Error{Op: "Get", URL: "https://east", Err: err} }

	tests := map[string]struct {
		err  error
		want string
	}{
		"nobody listens":         {request(syscall.ECONNREFUSED), "No answer from it: "},
		"no answer in time":      {request(context.DeadlineExceeded), "No answer from it: "},
		"unknown authority":      {request(x509.UnknownAuthorityError{}), "The certificate of it is not trusted: "},
		"wrong credentials":      {apierrors.NewUnauthorized("no"), "The credentials for it are wrong or have expired: "},
		"a missing right":        {apierrors.NewForbidden(roles, "r", errors.New("no")), "The user for it lacks the right named above: "},
		"a namespace that goes":  {terminating, "The namespace is being deleted: "},
		"the user gave up":       {request(context.Canceled), ""},
		"an error that says all": {apierrors.NewBadRequest("the name is too long"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Advice(fmt.Errorf("doing it: %w", test.err), "it")
			if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnErrorNamesSideAddressAndObject(t *testing.T) {
	member, err := memberSide("east", &rest.Config{Host: "https://10.0.0.1:6443"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cause := apierrors.NewUnauthorized("no")
	got := member.explain("creating", account("karmada-cluster", "karmada-east"), cause)
	if !errors.Is(got, cause) {
		t.Error("the cause is lost")
	}
	want := `creating ServiceAccount karmada-cluster/karmada-east in member "east" (https://10.0.0.1:6443): no` + "\n" +
		`The credentials for member "east" are wrong or have expired: get a new kubeconfig.`
	if got.Error() != want {
		t.Errorf("got  %s\nwant %s", got, want)
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
