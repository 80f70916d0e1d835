package agent

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Subresources of certificatesigningrequests. The control plane approves a requester's certificate only if
// the requester has the verb create on one of them.
const (
	// ApproveSelf is the subresource for an agent that renews its own certificate.
	ApproveSelf = "selfclusteragent"
	// ApproveAny is the subresource for users that may register clusters.
	ApproveAny = "clusteragent"
)

// Request is a request for an agent's certificate.
type Request struct {
	// Cluster is the cluster's name. It is not validated.
	Cluster string
	// Generator is true if the certificate is for GeneratorUser, which has no cluster.
	Generator bool
	// ClusterNamespace is the namespace for the cluster's Secrets.
	ClusterNamespace string
	// Requester is the user that sent the request.
	Requester string
	// Timeout is the time for which the requester waits for the certificate. 0 means unknown.
	Timeout time.Duration
}

// User returns the user of the requested certificate.
func (r Request) User() string {
	if r.Generator {
		return GeneratorUser
	}
	return User(r.Cluster)
}

// IsRenewal reports whether the requester is already the user of the requested certificate.
func (r Request) IsRenewal() bool { return r.Requester == r.User() }

// RecognizeRequest parses a CertificateSigningRequest. ok is false if the request is not for an
// agent: the request has another signer, usages other than those of a client, or names other than
// that of the agent.
func RecognizeRequest(csr *certificatesv1.CertificateSigningRequest) (Request, bool) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !hasClientUsages(csr.Spec.Usages) {
		return Request{}, false
	}
	certRequest, ok := parseRequest(csr.Spec.Request)
	if !ok || !slices.Equal(certRequest.Subject.Organization, []string{Group}) ||
		len(certRequest.DNSNames)+len(certRequest.EmailAddresses)+len(certRequest.IPAddresses)+len(certRequest.URIs) > 0 {
		return Request{}, false
	}
	cluster, ok := strings.CutPrefix(certRequest.Subject.CommonName, UserPrefix)
	if !ok {
		return Request{}, false
	}
	request := Request{Cluster: cluster, Requester: csr.Spec.Username}
	request.ClusterNamespace = cmp.Or(csr.Annotations[clusterv1alpha1.ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster)
	// An invalid duration is ignored. The timeout does not protect the control plane: it only avoids
	// useless approvals.
	request.Timeout, _ = time.ParseDuration(csr.Annotations[clusterv1alpha1.AgentRequestTimeoutAnnotation])
	if cluster == reservedName {
		request.Cluster, request.Generator = "", true
	}
	return request, true
}

func parseRequest(encoded []byte) (*x509.CertificateRequest, bool) {
	block, rest := pem.Decode(encoded)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, false
	}
	certRequest, err := x509.ParseCertificateRequest(block.Bytes)
	return certRequest, err == nil
}

// hasClientUsages reports whether the usages are those of a client: digital signature and client
// auth, with or without key encipherment.
func hasClientUsages(usages []certificatesv1.KeyUsage) bool {
	seen := map[certificatesv1.KeyUsage]bool{}
	for _, usage := range usages {
		seen[usage] = true
	}
	want := 2
	if seen[certificatesv1.UsageKeyEncipherment] {
		want++
	}
	return len(seen) == want && seen[certificatesv1.UsageDigitalSignature] && seen[certificatesv1.UsageClientAuth]
}
