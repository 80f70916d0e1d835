package enroll

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

func TestClusterSpecFromAgentFlags(t *testing.T) {
	reference := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: name}
	}
	member := &rest.Config{Host: "https://10.0.0.1"}
	tainted := []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	tests := map[string]struct {
		agent          Enrollment
		stored, wanted clusterv1alpha1.ClusterSpec
		// restart is true if the Cluster is stored already.
		restart bool
	}{
		"a new Cluster has the address of the kubeconfig": {
			wanted: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://10.0.0.1"},
		},
		"flags set more fields": {
			agent: Enrollment{Endpoint: "https://east", ProxyURL: "http://proxy", Provider: "metal", Region: "north", Zones: []string{"a"}, ReportedAccounts: AllAccounts()},
			wanted: clusterv1alpha1.ClusterSpec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://east", ProxyURL: "http://proxy",
				Provider: "metal", Region: "north", Zones: []string{"a"}, SecretRef: reference("east"), ImpersonatorSecretRef: reference("east-impersonator"),
			},
		},
		"fields without flags stay": {
			stored: clusterv1alpha1.ClusterSpec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine", Provider: "metal", Region: "north", Zones: []string{"a"},
				SecretRef: reference("other"), Taints: tainted,
			},
			wanted: clusterv1alpha1.ClusterSpec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine", Provider: "metal", Region: "north", Zones: []string{"a"},
				SecretRef: reference("other"), Taints: tainted,
			},
		},
		"push mode becomes pull mode": {
			stored: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://mine", InsecureSkipTLSVerification: true},
			wanted: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine"},
		},
		"a restart with other flags changes the connection but not the location": {
			agent:  Enrollment{Endpoint: "https://east", ProxyURL: "http://proxy", Provider: "cloud", Region: "south", Zones: []string{"b"}, ReportedAccounts: AllAccounts()},
			stored: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine", Provider: "metal", Region: "north", Zones: []string{"a"}, Taints: tainted},
			wanted: clusterv1alpha1.ClusterSpec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://east", ProxyURL: "http://proxy", Provider: "metal", Region: "north", Zones: []string{"a"}, Taints: tainted,
				SecretRef: reference("east"), ImpersonatorSecretRef: reference("east-impersonator"),
			},
			restart: true,
		},
		"zones replace the zone": {
			agent:  Enrollment{Zones: []string{"a", "b"}},
			stored: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine", Zone: "a"},
			wanted: clusterv1alpha1.ClusterSpec{ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://mine", Zones: []string{"a", "b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.agent.Name, test.agent.ClusterNamespace, test.agent.Member = "east", "ns", member
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: test.stored}
			if test.restart {
				test.agent.SetConnection(cluster, "id")
			} else {
				test.agent.SetSpec(cluster, "id")
			}
			if diff := cmp.Diff(test.wanted, cluster.Spec); diff != "" {
				t.Errorf("Cluster (-want +got):\n%s", diff)
			}
			if err := validate(cluster); err != nil {
				t.Errorf("the Cluster is invalid: %v", err)
			}
		})
	}
}

func TestCheckRegistrationRejectsOtherCluster(t *testing.T) {
	stored := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Pull)
	karmada, agent := clusterclienttest.NewClient(t, "", &stored), Enrollment{Name: "east", ClusterNamespace: "ns", Member: &rest.Config{Host: "https://10.0.0.1"}}
	if found, err := agent.verifyRegistration(t.Context(), karmada, "id"); err != nil || found == nil {
		t.Errorf("its own Cluster: %v, %v", found, err)
	}
	_, err := agent.verifyRegistration(t.Context(), karmada, "another")
	if want := `the cluster ID another or the cluster name east has been registered: Cluster "east" is another cluster, with ID id`; err == nil || !strings.HasPrefix(err.Error(), want) || !IsPermanentError(err) {
		t.Errorf("the Cluster of another member: got %v, want %q", err, want)
	}
}

func TestInvalidClusterIsRejectedByDryRun(t *testing.T) {
	tests := map[string]struct {
		agent     Enrollment
		serverErr error
		want      string
	}{
		"rejected by the control plane": {
			serverErr: apierrors.NewInvalid(schema.GroupKind{Kind: "Cluster"}, "east", field.ErrorList{field.Duplicate(field.NewPath("spec", "id"), "id")}),
			want:      `registering "east": Cluster "east" is invalid: spec.id: Duplicate value: "id"`,
		},
		"invalid flags": {agent: Enrollment{Endpoint: "nonsense"}, want: `cluster "east" would be invalid: spec.apiEndpoint`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := clusterclienttest.NewClient(t, "")
			karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.CreateOption) error {
					if (&client.CreateOptions{}).ApplyOptions(options).DryRun == nil {
						t.Error("the creation is not a dry run")
					}
					return test.serverErr
				},
			})
			test.agent.Name, test.agent.ClusterNamespace, test.agent.Member = "east", "ns", &rest.Config{Host: "https://10.0.0.1"}
			_, err := test.agent.verifyRegistration(t.Context(), karmada, "id")
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || !IsPermanentError(err) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPatchCommand(t *testing.T) {
	stored := clusterv1alpha1.ClusterSpec{Provider: "metal", Region: "north", Zones: []string{"a"}}
	tests := map[string]struct {
		agent  Enrollment
		stored clusterv1alpha1.ClusterSpec
		want   string
	}{
		"no flags":                {stored: stored},
		"equal flags":             {agent: Enrollment{Provider: "metal", Region: "north", Zones: []string{"a"}}, stored: stored},
		"the same zone":           {agent: Enrollment{Zones: []string{"a"}}, stored: clusterv1alpha1.ClusterSpec{Zone: "a"}},
		"another region":          {agent: Enrollment{Provider: "metal", Region: "south"}, stored: stored, want: `kubectl patch cluster east --type=merge -p '{"spec":{"region":"south"}}'`},
		"other zones":             {agent: Enrollment{Zones: []string{"a", "b"}}, stored: stored, want: `kubectl patch cluster east --type=merge -p '{"spec":{"zones":["a","b"]}}'`},
		"zones instead of a zone": {agent: Enrollment{Zones: []string{"b"}}, stored: clusterv1alpha1.ClusterSpec{Zone: "a"}, want: `kubectl patch cluster east --type=merge -p '{"spec":{"zone":null,"zones":["b"]}}'`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.agent.Name = "east"
			if got := test.agent.patchCommand(&clusterv1alpha1.Cluster{Spec: test.stored}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
