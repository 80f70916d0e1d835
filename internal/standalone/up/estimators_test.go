package up

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
	"karmada.io/karmada/internal/standalone"
)

func estimatorTestCluster(name, endpoint string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	cluster := clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: endpoint, SyncMode: mode}}
	cluster.Name = name
	return cluster
}

func TestPlanEstimatorServices(t *testing.T) {
	const name = clusterv1alpha1.EstimatorPrefix + "member1"
	state := storedState{Members: []string{"member1"}, Ports: map[string]int{"member1": 7001, "estimator-member1": 7002}}
	joined := estimatorTestCluster("member1", standalone.LoopbackURL(7001), clusterv1alpha1.Push)
	foreignService := newEstimatorService("member1", 7002)
	foreignService.Labels = nil
	type names struct{ Write, Remove, Foreign []string }
	tests := map[string]struct {
		clusters []clusterv1alpha1.Cluster
		existing []*corev1.Service
		want     names
	}{
		"a member gets a Service":                         {[]clusterv1alpha1.Cluster{joined}, nil, names{Write: []string{name}}},
		"a Service with the same address is not written":  {[]clusterv1alpha1.Cluster{joined}, []*corev1.Service{newEstimatorService("member1", 7002)}, names{}},
		"a new port is written":                           {[]clusterv1alpha1.Cluster{joined}, []*corev1.Service{newEstimatorService("member1", 9)}, names{Write: []string{name}}},
		"a Service of another owner is kept":              {[]clusterv1alpha1.Cluster{joined}, []*corev1.Service{foreignService}, names{Foreign: []string{name}}},
		"a member without a Cluster gets no Service":      {nil, nil, names{}},
		"a member without a Cluster keeps its Service":    {nil, []*corev1.Service{newEstimatorService("member1", 9)}, names{}},
		"a member in pull mode may have no address":       {[]clusterv1alpha1.Cluster{estimatorTestCluster("member1", "", clusterv1alpha1.Pull)}, nil, names{Write: []string{name}}},
		"another cluster with the name has no estimator":  {[]clusterv1alpha1.Cluster{estimatorTestCluster("member1", "https://10.0.0.1", clusterv1alpha1.Push)}, []*corev1.Service{newEstimatorService("member1", 7002)}, names{Remove: []string{name}}},
		"the Service of a member that does not run goes":  {nil, []*corev1.Service{newEstimatorService("member2", 9)}, names{Remove: []string{clusterv1alpha1.EstimatorPrefix + "member2"}}},
		"a foreign Service of a cluster is never removed": {nil, []*corev1.Service{{ObjectMeta: foreignService.ObjectMeta}}, names{}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			existing := make([]corev1.Service, len(test.existing))
			for i, service := range test.existing {
				existing[i] = *service
			}
			plan := planEstimatorServices(state, test.clusters, existing)
			got := names{Foreign: plan.foreign}
			for _, object := range plan.write {
				got.Write = append(got.Write, object.GetName())
			}
			for _, object := range plan.remove {
				got.Remove = append(got.Remove, object.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Services (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEstimatorCertificatesHaveOneUse(t *testing.T) {
	dir := dataDir{t.TempDir()}
	if err := dir.ensureEstimatorCertificates([]string{"member1", "member2"}, pki.DefaultLeafLifetime); err != nil {
		t.Fatal(err)
	}
	certs, roots := pki.Dir{Path: dir.estimatorsDir()}, x509.NewCertPool()
	authority, err := certs.EnsureAuthority(estimatorCA, "")
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(authority.Cert)
	for name, usage := range map[string]x509.ExtKeyUsage{
		estimatorClientCert: x509.ExtKeyUsageClientAuth, estimatorServerCert("member1"): x509.ExtKeyUsageServerAuth, estimatorServerCert("member2"): x509.ExtKeyUsageServerAuth,
	} {
		pair, err := tls.LoadX509KeyPair(certs.CertFile(name), certs.KeyFile(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{each}})
			if (err == nil) != (each == usage) {
				t.Errorf("certificate %s for usage %d: %v", name, each, err)
			}
		}
	}
	pair, err := tls.LoadX509KeyPair(certs.CertFile(estimatorServerCert("member1")), certs.KeyFile(estimatorServerCert("member1")))
	if err != nil {
		t.Fatal(err)
	}
	if pair.Leaf.VerifyHostname(clusterv1alpha1.EstimatorPrefix+"member2.karmada-system.svc") == nil {
		t.Error("the certificate of a member is valid for the estimator of another member")
	}
}

func TestFlagsOfUsersOverrideEstimatorConfig(t *testing.T) {
	defaults := dataDir{t.TempDir()}.estimatorClientConfig()
	tests := map[string]struct {
		given   []string
		enabled bool
	}{
		"estimators are used by default": {nil, true},
		"a user may turn them off":       {[]string{"karmada-scheduler.enable-scheduler-estimator=false"}, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			configuration, err := components.ConfigureWithDefaults(gates.New(), defaults, test.given)
			if err != nil {
				t.Fatal(err)
			}
			component := configuration.Hosted([]string{programs.Scheduler})[0]
			options, ok := component.Options.(*scheduling.Options)
			if !ok || options.EnableEstimators != test.enabled || options.Estimators.TLS.CAFile == "" {
				t.Errorf("options %+v", component.Options)
			}
			if ineffective := component.IneffectiveFlags(); len(ineffective) > 0 {
				t.Errorf("flags that the user did not give are reported: %q", ineffective)
			}
		})
	}
}

func TestChosenEstimatorPortIsKept(t *testing.T) {
	ports := map[string]int{}
	if err := choosePorts(ports, []string{"member1"}, estimatorPortNames([]string{"member1"})); err != nil {
		t.Fatal(err)
	}
	first := maps.Clone(ports)
	if err := choosePorts(ports, []string{"member1"}, estimatorPortNames([]string{"member1"})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, ports); diff != "" || ports["estimator-member1"] == 0 {
		t.Errorf("ports (-first +second):\n%s", diff)
	}
}
