package agent

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Annotations that this project adds to the objects of a registration.
const (
	// ClusterNamespaceAnnotation, on the request for a certificate, is the namespace for the
	// Secrets of the cluster; karmada-cluster if it is absent. On the ClusterRole of an agent,
	// and on the execution namespace of its cluster, it is the namespace in which the agent
	// has rights.
	ClusterNamespaceAnnotation = "cluster.karmada.io/cluster-namespace"

	// RequestAnnotation, on the ClusterRole of an agent, is the UID of the request for the
	// certificate of the agent. On an execution namespace it is that of the request for which
	// the namespace was created.
	RequestAnnotation = "cluster.karmada.io/agent-request"

	// RequesterAnnotation, on the ClusterRole of an agent, is the user that sent that request.
	RequesterAnnotation = "cluster.karmada.io/agent-requester"

	// RecordClusterAnnotation, RecordRequestAnnotation and RecordRequesterAnnotation, on the
	// execution namespace of a cluster with an agent, keep a copy of these annotations where
	// no agent can write, in case its ClusterRole is lost: the UID of the Cluster for which
	// they are valid, the UID of the request and the user that sent it.
	// ClusterNamespaceAnnotation belongs to the copy.
	RecordClusterAnnotation   = "cluster.karmada.io/agent-record-cluster"
	RecordRequestAnnotation   = "cluster.karmada.io/agent-record-request"
	RecordRequesterAnnotation = "cluster.karmada.io/agent-record-requester"

	// ManagedLabel is set on the roles and role bindings of an agent that this project
	// manages. Its value is the name of the cluster.
	ManagedLabel = "cluster.karmada.io/agent"
)

// Subresources of certificatesigningrequests. A requester needs the verb create on one of them to get
// its certificate approved.
const (
	// ApproveSelf is for an agent that renews its own certificate.
	ApproveSelf = "selfclusteragent"
	// ApproveAny is for users that may register clusters.
	ApproveAny = "clusteragent"
)

// Request is a request for the certificate of an agent.
type Request struct {
	// Cluster is the name of the cluster. It is not validated.
	Cluster string
	// Generator is true for the request of the Generator, which has no cluster.
	Generator bool
	// ClusterNamespace is the namespace for the Secrets of the cluster.
	ClusterNamespace string
	// Requester is the user that sent the request.
	Requester string
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
// agent: it has another signer, usages other than those of a client, or more names than that
// of the agent.
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
	request.ClusterNamespace = cmp.Or(csr.Annotations[ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster)
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

// hasClientUsages reports whether these are the usages of a client: digital signature and
// client auth, with or without key encipherment.
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
