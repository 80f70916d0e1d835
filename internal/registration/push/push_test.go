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
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
	"karmada.io/karmada/internal/registration/enroll"
)

// The tests of this file check the requests and their order. The integration tests check an API server's
// responses.

func TestFailedJoinIsRolledBack(t *testing.T) {
	tests := map[string]struct {
		failing clusterclienttest.FailingObject
		before  []client.Object
		want    []string
		isError bool
	}{
		"success": {
			want: []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"objects of an earlier run are reused": {
			before: []client.Object{registration.NewNamespace("ns"), clusterclienttest.NewSecret("east"), clusterclienttest.NewSecret("east-impersonator")},
			want:   []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"a failed Secret: all created objects are deleted": {
			failing: "east", isError: true,
		},
		"existing objects stay": {
			failing: "east", isError: true,
			before: []client.Object{registration.NewNamespace("ns"), clusterclienttest.NewSecret("east-impersonator")},
			want:   []string{"Namespace ns", "Secret ns/east-impersonator"},
		},
		"a namespace with other objects stays": {
			failing: "east", isError: true,
			before: []client.Object{clusterclienttest.NewSecret("west")},
			want:   []string{"Namespace ns", "Secret ns/west"},
		},
		"the Secret of another Cluster is not adopted": {
			before:  []client.Object{registration.NewNamespace("ns"), clusterclienttest.NewSecret("east-impersonator", metav1.OwnerReference{Kind: "Cluster", Name: "east-impersonator"})},
			want:    []string{"Namespace ns", "Secret ns/east-impersonator"},
			isError: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada, member := clusterclienttest.NewClient(t, test.failing, test.before...), clusterclienttest.NewClient(t, "")
			join := Join{Name: "east", ClusterNamespace: "ns"}
			wanted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			err := join.register(t.Context(), karmada, wanted, enroll.Credentials{Token: []byte("t")})
			if (err != nil) != test.isError {
				t.Fatalf("registering: %v", err)
			}
			if err != nil {
				if err := rollBack(t.Context(), karmada, member); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, clusterclienttest.ListContent(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoinSetsOwnerOfSecrets(t *testing.T) {
	karmada := clusterclienttest.NewClient(t, "")
	join := Join{Name: "east", ClusterNamespace: "ns"}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, enroll.Credentials{}); err != nil {
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

func TestRollBackIgnoresCanceledContext(t *testing.T) {
	karmada, member := clusterclienttest.NewClient(t, ""), clusterclienttest.NewClient(t, "")
	if _, err := member.Ensure(t.Context(), registration.NewServiceAccount("ns", "karmada-east"), func(client.Object) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rollBack(ctx, karmada, member); err != nil {
		t.Fatal(err)
	}
	if remaining := clusterclienttest.ListContent(t, member); len(remaining) > 0 {
		t.Errorf("remaining objects: %v", remaining)
	}
}

func TestJoinDryRun(t *testing.T) {
	karmada, member := clusterclienttest.NewClient(t, ""), clusterclienttest.NewClient(t, "", enroll.NewClusterRole("east"))
	var logged []string
	log := registration.Log(func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) })
	karmada.DryRun, member.DryRun, karmada.Log, member.Log = true, true, log, log
	join := Join{Name: "east", ClusterNamespace: "ns", DryRun: true}
	before := clusterclienttest.ListContent(t, member)
	credentials, err := join.grantAccess(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, credentials); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{before, nil}, [][]string{clusterclienttest.ListContent(t, member), clusterclienttest.ListContent(t, karmada)}); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	for _, line := range logged {
		if !strings.HasPrefix(line, "would ") {
			t.Errorf("logged %q", line)
		}
	}
	if !slices.Contains(logged, "would reuse ClusterRole karmada-controller-manager:karmada-east in it") || !slices.Contains(logged, "would create Cluster east in it") {
		t.Errorf("logged %q", logged)
	}
}

func TestUnjoinFindCluster(t *testing.T) {
	push, pull := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push), clusterclienttest.NewCluster("agent", "id", clusterv1alpha1.Pull)
	protected := clusterclienttest.NewCluster("vault", "id", clusterv1alpha1.Push)
	protected.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	karmada := clusterclienttest.NewClient(t, "", &push, &pull, &protected)
	tests := map[string]string{
		"east":  "",
		"west":  `there is no Cluster "west" in it (https://it); use --force to delete the objects that an interrupted run left`,
		"agent": `cluster "agent" is in Pull mode: use unregister`,
		"vault": `cluster "vault": This resource is protected: to delete it, first remove its label resourcetemplate.karmada.io/deletion-protected=Always`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := (Unjoin{Name: name}).findCluster(t.Context(), karmada); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestUnjoinLogsRemainingObjects(t *testing.T) {
	limited := map[string]string{clusterv1alpha1.MemberRoleAnnotation: "karmada-delivers"}
	const binding = "ClusterRoleBinding karmada-controller-manager:karmada-far:member-role"
	const created = "Secret ns/karmada-far, ServiceAccount ns/karmada-far, Secret ns/karmada-impersonator, ServiceAccount ns/karmada-impersonator, Namespace ns"
	const command = "run:\n  kubectl karmada unjoin --kubeconfig=k far --force --cluster-kubeconfig=MEMBER_KUBECONFIG --cluster-namespace=ns"
	tests := map[string]struct {
		dryRun      bool
		annotations map[string]string
		want        []string
		isBound     bool
	}{
		"a run":                        {want: []string{`"far" is not cleaned up: the objects that join created there stay`, created, command}},
		"a dry run":                    {dryRun: true, want: []string{"would delete Cluster far in it", `"far" would not be cleaned up: the objects that join created there would stay`, created, command}},
		"a cluster with a member role": {annotations: limited, isBound: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var logged []string
			unjoin := Unjoin{
				Name: "far", ClusterNamespace: "ns", DryRun: test.dryRun, Command: "kubectl karmada unjoin --kubeconfig=k",
				Log: func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) },
			}
			far := clusterclienttest.NewCluster("far", "id", clusterv1alpha1.Push)
			far.Annotations = test.annotations
			karmada := clusterclienttest.NewClient(t, "", &far)
			if err := unjoin.removeCluster(t.Context(), karmada, nil, &far); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(logged, "\n")
			for _, want := range test.want {
				if !strings.Contains(all, want) {
					t.Errorf("logged %q, want %q in it", all, want)
				}
			}
			if isBound := strings.Contains(all, binding); isBound != test.isBound {
				t.Errorf("the binding of the member role is listed: %v, in %q", isBound, all)
			}
			if isKept := len(clusterclienttest.ListContent(t, karmada)) > 0; isKept != test.dryRun {
				t.Errorf("the Cluster is kept: %v", isKept)
			}
		})
	}
}

func TestUnjoinWithoutControlPlane(t *testing.T) {
	memberObjects := func(owner string) []client.Object {
		cleanup := enroll.Cleanup{Cluster: "east", Namespace: "ns"}
		objects := slices.Concat(cleanup.Objects()[1:], cleanup.SharedObjects())
		for _, object := range objects {
			if owner != "" {
				object.SetAnnotations(map[string]string{clusterv1alpha1.ControlPlaneAnnotation: owner})
			}
		}
		return objects
	}
	shared := memberObjects("gone")
	shared[len(shared)-1].SetAnnotations(map[string]string{clusterv1alpha1.ControlPlaneAnnotation: "gone,other"})
	tests := map[string]struct {
		objects []client.Object
		dryRun  bool
		want    []string
	}{
		"objects that name their control plane":       {objects: memberObjects("gone")},
		"objects without a control plane":             {objects: memberObjects("")},
		"a namespace that another control plane uses": {objects: shared, want: []string{"Namespace ns"}},
		"a member without objects":                    {},
		"a dry run": {objects: memberObjects("gone"), dryRun: true, want: []string{
			"ClusterRole karmada-controller-manager:karmada-east", "ClusterRoleBinding karmada-controller-manager:karmada-east", "Namespace ns",
			"Secret ns/karmada-east", "Secret ns/karmada-impersonator", "ServiceAccount ns/karmada-east", "ServiceAccount ns/karmada-impersonator",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var logged []string
			unjoin := Unjoin{Name: "east", ClusterNamespace: "ns", Force: true, DryRun: test.dryRun, Log: func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }}
			member := clusterclienttest.NewClient(t, "", test.objects...)
			member.Log = unjoin.Log
			if err := unjoin.deleteNamedObjects(t.Context(), member); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, clusterclienttest.ListContent(t, member), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			if lists := strings.Count(strings.Join(logged, "\n"), "would delete"); test.dryRun && lists != len(test.objects) {
				t.Errorf("%d objects would be deleted, want %d: %q", lists, len(test.objects), logged)
			}
		})
	}
}

func TestUnjoinContinuesWithoutControlPlane(t *testing.T) {
	refused := &rest.Config{Host: "https://127.0.0.1:1"}
	for name, test := range map[string]struct {
		unjoin Unjoin
		want   string
	}{
		"with force and a member":  {Unjoin{Force: true, Member: refused}, `member "east"`},
		"without force":            {Unjoin{Member: refused}, "reading Cluster east in the control plane"},
		"with force and no member": {Unjoin{Force: true}, "reading Cluster east in the control plane"},
	} {
		t.Run(name, func(t *testing.T) {
			test.unjoin.Name, test.unjoin.Karmada, test.unjoin.Log = "east", refused, t.Logf
			if err := test.unjoin.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestUnjoinRejectsWrongMember(t *testing.T) {
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
		same, another, withoutID := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push), clusterclienttest.NewCluster("east", "another", clusterv1alpha1.Push), clusterclienttest.NewCluster("east", "", clusterv1alpha1.Push)
		if opened, err := unjoin.openMember(t.Context(), clusterclienttest.NewClient(t, ""), &same); err != nil || opened == nil {
			t.Errorf("the same cluster: %v", err)
		}
		for want, cluster := range map[string]*clusterv1alpha1.Cluster{
			`Cluster "east" has another; choose the right context`: &another,
			`has ID id, and spec.id of the Cluster is empty`:       &withoutID,
		} {
			if _, err := unjoin.openMember(t.Context(), nil, cluster); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	// Unjoin with Force a name for which no Cluster exists.
	west := clusterclienttest.NewCluster("west", "id", clusterv1alpha1.Push)
	unjoin := Unjoin{Name: "east", Force: true, Member: &rest.Config{Host: member.URL}, Log: t.Logf}
	if _, err := unjoin.openMember(t.Context(), clusterclienttest.NewClient(t, "", &west), nil); err == nil || !strings.Contains(err.Error(), `leads to Cluster "west"`) {
		t.Errorf("a member that is registered under another name: %v", err)
	}
	if opened, err := unjoin.openMember(t.Context(), clusterclienttest.NewClient(t, ""), nil); err != nil || opened == nil {
		t.Errorf("a member that is not registered: %v", err)
	}
}

func TestJoinClusterAndSecrets(t *testing.T) {
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
	got := join.newCluster("the-id")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Cluster (-want +got):\n%s", diff)
	}
	if errs := cluster.Validate(got); len(errs) > 0 {
		t.Errorf("the Cluster is invalid: %v", errs)
	}

	credentials, impersonator := enroll.Credentials{Token: []byte("t"), ImpersonatorToken: []byte("i"), CA: []byte("ca")}.Secrets("east", "ns")
	data := map[string]map[string][]byte{credentials.Name: credentials.Data, impersonator.Name: impersonator.Data}
	wantData := map[string]map[string][]byte{
		"east":              {"token": []byte("t"), "caBundle": []byte("ca")},
		"east-impersonator": {"token": []byte("i")},
	}
	if diff := cmp.Diff(wantData, data); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
}

func TestJoinRejectsInvalidOptions(t *testing.T) {
	anyConfig := &rest.Config{Host: "https://127.0.0.1:1"}
	tests := map[string]struct {
		join Join
		want string
	}{
		"an invalid name":                    {Join{Name: "No", Karmada: anyConfig, Member: anyConfig}, `cluster name "No"`},
		"no kubeconfig of the member":        {Join{Name: "east", Karmada: anyConfig}, `no kubeconfig was given for member "east"`},
		"no kubeconfig of the control plane": {Join{Name: "east", Member: anyConfig}, "no kubeconfig was given for the control plane"},
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

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost": true, "https://[::1]:6443": true,
		"https://10.0.0.1": false, "https://east.example": false, "::": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("isLoopback(%q) = %t", address, got)
		}
	}
}
