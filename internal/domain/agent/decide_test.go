package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// signingRequest returns the certificate request of a cluster's agent after the given functions changed it.
func signingRequest(t testing.TB, user string, change ...func(*certificatesv1.CertificateSigningRequest, *x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: "kubernetes.io/kube-apiserver-client", Username: "system:bootstrap:abcdef",
		Usages: []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
	}}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agent.Group}}}
	for _, each := range change {
		each(csr, template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	if csr.Spec.Request == nil {
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	return csr
}

func TestRecognizeRequest(t *testing.T) {
	type (
		csr         = certificatesv1.CertificateSigningRequest
		x509Request = x509.CertificateRequest
	)
	east := agent.Request{Cluster: "east", ClusterNamespace: "karmada-cluster", Requester: "system:bootstrap:abcdef"}
	elsewhere := east
	elsewhere.ClusterNamespace = "clusters"
	uri := &url.URL{Scheme: "spiffe", Host: "x"}
	tests := map[string]struct {
		user   string
		change func(*csr, *x509Request)
		want   *agent.Request
	}{
		"the agent of a cluster": {"", func(*csr, *x509Request) {}, &east},
		"no key encipherment": {"", func(s *csr, _ *x509Request) {
			s.Spec.Usages = []certificatesv1.KeyUsage{"client auth", "digital signature"}
		}, &east},
		"another namespace for the Secrets": {"", func(s *csr, _ *x509Request) {
			s.Annotations = map[string]string{clusterv1alpha1.ClusterNamespaceAnnotation: "clusters"}
		}, &elsewhere},
		"the generator": {agent.GeneratorUser, func(*csr, *x509Request) {}, &agent.Request{Generator: true, ClusterNamespace: "karmada-cluster", Requester: "system:bootstrap:abcdef"}},
		"another signer": {"", func(s *csr, _ *x509Request) {
			s.Spec.SignerName = "kubernetes.io/kube-apiserver-client-kubelet"
		}, nil},
		"usages of a server": {"", func(s *csr, _ *x509Request) {
			s.Spec.Usages = []certificatesv1.KeyUsage{"digital signature", "server auth"}
		}, nil},
		"usages of a client and a server": {"", func(s *csr, _ *x509Request) { s.Spec.Usages = append(s.Spec.Usages, "server auth") }, nil},
		"too few usages":                  {"", func(s *csr, _ *x509Request) { s.Spec.Usages = s.Spec.Usages[1:] }, nil},
		"the same usage twice": {"", func(s *csr, _ *x509Request) {
			s.Spec.Usages = []certificatesv1.KeyUsage{"client auth", "client auth"}
		}, nil},
		"another organization": {"", func(_ *csr, a *x509Request) { a.Subject.Organization = []string{"system:masters"} }, nil},
		"an additional organization": {"", func(_ *csr, a *x509Request) {
			a.Subject.Organization = append(a.Subject.Organization, "system:masters")
		}, nil},
		"no organization": {"", func(_ *csr, a *x509Request) { a.Subject.Organization = nil }, nil},
		"another user":    {"anna", func(*csr, *x509Request) {}, nil},
		"a DNS name":      {"", func(_ *csr, a *x509Request) { a.DNSNames = []string{"x"} }, nil},
		"an address":      {"", func(_ *csr, a *x509Request) { a.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, nil},
		"a mail address":  {"", func(_ *csr, a *x509Request) { a.EmailAddresses = []string{"a@b"} }, nil},
		"a URI":           {"", func(_ *csr, a *x509Request) { a.URIs = []*url.URL{uri} }, nil},
		"not PEM":         {"", func(s *csr, _ *x509Request) { s.Spec.Request = []byte("hello") }, nil},
		"empty":           {"", func(s *csr, _ *x509Request) { s.Spec.Request = []byte{} }, nil},
		"a certificate": {"", func(s *csr, _ *x509Request) {
			s.Spec.Request = []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")
		}, nil},
		"invalid DER": {"", func(s *csr, _ *x509Request) {
			s.Spec.Request = []byte("-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n")
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			user := test.user
			if user == "" {
				user = agent.User("east")
			}
			got, ok := agent.RecognizeRequest(signingRequest(t, user, test.change))
			if ok != (test.want != nil) {
				t.Fatalf("recognized: %t, want %t", ok, test.want != nil)
			}
			if ok {
				if diff := cmp.Diff(*test.want, got); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func newClusters(names ...string) []clusterv1alpha1.Cluster {
	var made []clusterv1alpha1.Cluster
	for _, name := range names {
		made = append(made, clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return made
}

func TestDecideRequest(t *testing.T) {
	role := func(annotations ...string) *rbacv1.ClusterRole {
		made := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east"), Annotations: map[string]string{}}}
		for i := 0; i < len(annotations); i += 2 {
			made.Annotations[annotations[i]] = annotations[i+1]
		}
		return made
	}
	left := role(clusterv1alpha1.AgentRequestAnnotation, "other")
	left.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "east", UID: "gone"}}
	leaving := role(clusterv1alpha1.AgentRequestAnnotation, "other")
	leaving.DeletionTimestamp = &metav1.Time{}
	namespace := func(name, label string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karmada.io/system": label}}}
	}
	pulled := newClusters("east")
	pulled[0].Spec.SyncMode = clusterv1alpha1.Pull
	const token, self = "system:bootstrap:abcdef", "system:karmada:agent:east"
	tests := map[string]struct {
		request agent.Request
		facts   agent.RequestFacts
		want    string
	}{
		"a token for a new cluster":              {facts: agent.RequestFacts{CanRegister: true}, want: "AutoApproved"},
		"a token for the only name of its scope": {facts: agent.RequestFacts{CanRegister: true, IsScoped: true, Scope: &agent.Scope{ClusterName: "east"}}, want: "AutoApproved"},
		"a token for any name in its scope":      {facts: agent.RequestFacts{CanRegister: true, IsScoped: true, Scope: &agent.Scope{Region: "eu"}}, want: "AutoApproved"},
		"a token for a name outside its scope":   {facts: agent.RequestFacts{CanRegister: true, IsScoped: true, Scope: &agent.Scope{ClusterName: "west"}}, want: clusterv1alpha1.AgentReasonOutOfScope},
		"a deleted token with a scope":           {facts: agent.RequestFacts{CanRegister: true, IsScoped: true}, want: clusterv1alpha1.AgentReasonOutOfScope},
		"a token with a scope for the generator": {
			request: agent.Request{Generator: true}, facts: agent.RequestFacts{CanRegister: true, IsScoped: true, Scope: &agent.Scope{Region: "eu"}}, want: clusterv1alpha1.AgentReasonOutOfScope,
		},
		"a token without the right": {want: clusterv1alpha1.AgentReasonNotAllowed},
		"a token for a Cluster that exists": {
			facts: agent.RequestFacts{CanRegister: true, Clusters: newClusters("east")}, want: clusterv1alpha1.AgentReasonNameTaken,
		},
		"a token for a name that is the Secret of another Cluster": {
			facts: agent.RequestFacts{CanRegister: true, Clusters: newClusters("east-impersonator")}, want: clusterv1alpha1.AgentReasonNameTaken,
		},
		"a token for a name that another request got": {
			facts: agent.RequestFacts{CanRegister: true, Request: "this", Role: role(clusterv1alpha1.AgentRequestAnnotation, "other")}, want: clusterv1alpha1.AgentReasonCertificateIssued,
		},
		"a request whose requester still waits": {request: agent.Request{Timeout: time.Minute}, facts: agent.RequestFacts{CanRegister: true, Age: time.Minute - 1}, want: "AutoApproved"},
		"a request whose requester has stopped waiting": {
			request: agent.Request{Timeout: time.Minute}, facts: agent.RequestFacts{CanRegister: true, Age: time.Minute}, want: clusterv1alpha1.AgentReasonRequestTimedOut,
		},
		"a request of an unknown requester timeout": {facts: agent.RequestFacts{CanRegister: true, Age: time.Hour}, want: "AutoApproved"},
		"a request with a role, whose requester has stopped waiting": {
			request: agent.Request{Timeout: time.Minute},
			facts:   agent.RequestFacts{CanRegister: true, Age: time.Hour, Request: "this", Role: role(clusterv1alpha1.AgentRequestAnnotation, "this")}, want: "AutoApproved",
		},
		"the same request again, after a restart": {
			facts: agent.RequestFacts{CanRegister: true, Request: "this", Role: role(clusterv1alpha1.AgentRequestAnnotation, "this")}, want: "AutoApproved",
		},
		"a role that was created beforehand":    {facts: agent.RequestFacts{CanRegister: true, Request: "this", Role: role()}, want: "AutoApproved"},
		"a name whose Cluster was just deleted": {facts: agent.RequestFacts{CanRegister: true, Request: "this", Role: left}, want: "wait"},
		"a name whose role is being deleted":    {facts: agent.RequestFacts{CanRegister: true, Role: leaving}, want: "wait"},
		"an agent that renews":                  {request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true, Clusters: pulled}, want: "AutoApproved"},
		"an agent whose name a cluster in push mode has now": {
			request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true, Clusters: newClusters("east")}, want: clusterv1alpha1.AgentReasonNotRegistered,
		},
		"an agent with a role whose name a cluster in push mode has now": {
			request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true, Role: role(clusterv1alpha1.AgentRequestAnnotation, "other"), Clusters: newClusters("east")},
			want: clusterv1alpha1.AgentReasonNotRegistered,
		},
		"an agent whose Cluster was just deleted": {request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true, Role: left}, want: clusterv1alpha1.AgentReasonNotRegistered},
		"an agent that renews before its Cluster exists": {
			request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true, Role: role(clusterv1alpha1.AgentRequestAnnotation, "other")}, want: "AutoApproved",
		},
		"an agent whose cluster was removed": {request: agent.Request{Requester: self}, facts: agent.RequestFacts{CanRenew: true}, want: clusterv1alpha1.AgentReasonNotRegistered},
		"an agent that requests another name": {
			request: agent.Request{Requester: "system:karmada:agent:west"}, facts: agent.RequestFacts{CanRenew: true}, want: clusterv1alpha1.AgentReasonNotAllowed,
		},
		"an agent that requests another name and may register": {
			request: agent.Request{Requester: "system:karmada:agent:west"},
			facts:   agent.RequestFacts{CanRenew: true, CanRegister: true, Clusters: newClusters("east")}, want: clusterv1alpha1.AgentReasonNameTaken,
		},
		"an invalid cluster name": {request: agent.Request{Cluster: "East"}, facts: agent.RequestFacts{CanRegister: true}, want: clusterv1alpha1.AgentReasonInvalidName},
		"the name of a Secret": {
			request: agent.Request{Cluster: "west-impersonator"}, facts: agent.RequestFacts{CanRegister: true}, want: clusterv1alpha1.AgentReasonInvalidName,
		},
		"a namespace that was prepared": {
			request: agent.Request{ClusterNamespace: "clusters"}, facts: agent.RequestFacts{CanRegister: true, ClusterNamespace: namespace("clusters", "true")}, want: "AutoApproved",
		},
		"a namespace that does not exist": {request: agent.Request{ClusterNamespace: "clusters"}, facts: agent.RequestFacts{CanRegister: true}, want: clusterv1alpha1.AgentReasonNamespaceNotPrepared},
		"the namespace of the tokens": {
			request: agent.Request{ClusterNamespace: "kube-system"}, facts: agent.RequestFacts{CanRegister: true, ClusterNamespace: namespace("kube-system", "")}, want: clusterv1alpha1.AgentReasonNamespaceNotPrepared,
		},
		"the namespace of the components": {
			request: agent.Request{ClusterNamespace: "karmada-system"}, facts: agent.RequestFacts{CanRegister: true, ClusterNamespace: namespace("karmada-system", "true")}, want: clusterv1alpha1.AgentReasonNamespaceNotPrepared,
		},
		"the namespace of Works": {
			request: agent.Request{ClusterNamespace: "karmada-es-west"}, facts: agent.RequestFacts{CanRegister: true, ClusterNamespace: namespace("karmada-es-west", "true")}, want: clusterv1alpha1.AgentReasonNamespaceNotPrepared,
		},
		"the generator":                        {request: agent.Request{Generator: true}, facts: agent.RequestFacts{CanRegister: true}, want: "AutoApproved"},
		"a generator with all permissions":     {request: agent.Request{Generator: true}, facts: agent.RequestFacts{CanRegister: true, GeneratorUnlimited: true}, want: clusterv1alpha1.AgentReasonGeneratorUnlimited},
		"a generator that renews":              {request: agent.Request{Generator: true, Requester: agent.GeneratorUser}, facts: agent.RequestFacts{CanRenew: true}, want: clusterv1alpha1.AgentReasonNotAllowed},
		"an agent that requests the generator": {request: agent.Request{Generator: true, Requester: self}, facts: agent.RequestFacts{CanRenew: true}, want: clusterv1alpha1.AgentReasonNotAllowed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := test.request
			if request.Cluster == "" && !request.Generator {
				request.Cluster = "east"
			}
			if request.ClusterNamespace == "" {
				request.ClusterNamespace = "karmada-cluster"
			}
			if request.Requester == "" {
				request.Requester = token
			}
			got := agent.DecideRequest(request, test.facts)
			if got.Wait != (test.want == "wait") || !got.Wait && got.Reason != test.want {
				t.Errorf("got %+v, want %s", got, test.want)
			}
			if got.Approved != (got.Reason == "AutoApproved") {
				t.Errorf("approved: %t for reason %s", got.Approved, got.Reason)
			}
			if strings.Contains(got.Message, "%!") || !got.Wait && got.Message == "" {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

func TestValidateAgentCluster(t *testing.T) {
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode, secret, impersonator string) *clusterv1alpha1.Cluster {
		made := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
		if secret != "" {
			made.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: secret}
		}
		if impersonator != "" {
			made.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: impersonator}
		}
		return made
	}
	in := func(namespace string, of *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
		for _, secret := range []*clusterv1alpha1.LocalSecretReference{of.Spec.SecretRef, of.Spec.ImpersonatorSecretRef} {
			if secret != nil {
				secret.Namespace = namespace
			}
		}
		return of
	}
	readable := func(secret clusterv1alpha1.LocalSecretReference) bool { return secret.Namespace == "karmada-cluster" }
	tests := map[string]struct {
		user            string
		cluster, stored *clusterv1alpha1.Cluster
		want            []string
	}{
		"its own":                            {agent.User("east"), cluster("east", "Pull", "east", "east-impersonator"), nil, nil},
		"its own, without secrets":           {agent.User("east"), cluster("east", "Pull", "", ""), nil, nil},
		"another one":                        {agent.User("west"), cluster("east", "Pull", "", ""), nil, []string{"metadata.name"}},
		"another one with its secrets":       {agent.User("west"), cluster("east", "Pull", "east", ""), nil, []string{"metadata.name", "spec.secretRef.name"}},
		"its own in Push mode":               {agent.User("east"), cluster("east", "Push", "east", ""), nil, []string{"spec.syncMode"}},
		"its own with the secret of another": {agent.User("east"), cluster("east", "Pull", "west", "west-impersonator"), nil, []string{"spec.secretRef.name", "spec.impersonatorSecretRef.name"}},
		"the generator":                      {agent.GeneratorUser, cluster("rbac-generator", "Pull", "", ""), nil, []string{"metadata.name"}},
		"values of an administrator, unchanged": {
			agent.User("east"), cluster("east", "Pull", "mine", ""), cluster("east", "Pull", "mine", ""), nil,
		},
		"a Cluster in Push mode that replaced its own": {
			agent.User("east"), cluster("east", "Push", "east", ""), cluster("east", "Push", "east", ""), []string{"spec.syncMode"},
		},
		"values of an administrator, changed to another cluster's": {
			agent.User("east"), cluster("east", "Pull", "west", ""), cluster("east", "Pull", "mine", ""), []string{"spec.secretRef.name"},
		},
		"an administrator": {"system:admin", cluster("east", "Push", "west", ""), nil, nil},
		"a Secret of that name in a namespace of others": {
			agent.User("east"), in("team", cluster("east", "Pull", "east", "east-impersonator")), nil, []string{"spec.secretRef.namespace", "spec.impersonatorSecretRef.namespace"},
		},
		"a Secret of that name, moved to a namespace of others": {
			agent.User("east"), in("team", cluster("east", "Pull", "east", "")), cluster("east", "Pull", "east", ""), []string{"spec.secretRef.namespace"},
		},
		"a Secret in a namespace of others that an administrator named": {
			agent.User("east"), in("team", cluster("east", "Pull", "east", "")), in("team", cluster("east", "Pull", "east", "")), nil,
		},
		"administrators may name Secrets anywhere": {"system:admin", in("team", cluster("east", "Pull", "east", "")), nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, wrong := range agent.ValidateCluster(test.user, test.cluster, test.stored, agent.ClusterRules{CanReadSecret: readable}) {
				got = append(got, wrong.Field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzRecognizeRequest(f *testing.F) {
	f.Add(signingRequest(f, agent.User("east")).Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		csr := signingRequest(t, "x")
		csr.Spec.Request = encoded
		request, ok := agent.RecognizeRequest(csr)
		if ok && !request.Generator && !strings.HasPrefix(request.User(), agent.UserPrefix) {
			t.Errorf("user %q", request.User())
		}
	})
}
