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

// Annotations that this project adds to what registration makes.
const (
	// ClusterNamespaceAnnotation, on the request for a certificate, is the namespace
	// in which the Secrets of the cluster will be; karmada-cluster if it is absent.
	// On the ClusterRole of an agent, and on the execution namespace of its cluster, it
	// is the one that the agent has rights in.
	ClusterNamespaceAnnotation = "cluster.karmada.io/cluster-namespace"

	// RequestAnnotation, on the ClusterRole of an agent, is the UID of the request
	// whose certificate makes its holder that agent. On an execution namespace it is
	// that of the request for which the namespace was made.
	RequestAnnotation = "cluster.karmada.io/agent-request"

	// RequesterAnnotation, on the ClusterRole of an agent, is who sent that request.
	RequesterAnnotation = "cluster.karmada.io/agent-requester"

	// RecordClusterAnnotation, RecordRequestAnnotation and RecordRequesterAnnotation,
	// on the execution namespace of a cluster with an agent, keep who the agent is
	// where no agent can write, for the case that its ClusterRole is lost: the UID of
	// the Cluster that they are good for, the UID of the request and who sent it. With
	// them is ClusterNamespaceAnnotation.
	RecordClusterAnnotation   = "cluster.karmada.io/agent-record-cluster"
	RecordRequestAnnotation   = "cluster.karmada.io/agent-record-request"
	RecordRequesterAnnotation = "cluster.karmada.io/agent-record-requester"

	// ManagedLabel marks the roles of an agent, and what binds them, as kept by this
	// project. Its value is the name of the cluster.
	ManagedLabel = "cluster.karmada.io/agent"
)

// Subresources of certificatesigningrequests on which one must be allowed to
// create, to have a certificate approved.
const (
	// ApproveSelf is for an agent that renews its own certificate.
	ApproveSelf = "selfclusteragent"
	// ApproveAny is for those who may register clusters.
	ApproveAny = "clusteragent"
)

// Request is what somebody who wants to be an agent asks for.
type Request struct {
	// Cluster is the name of the cluster; nobody has looked whether it is valid.
	Cluster string
	// Generator is true for the request of the Generator, who has no cluster.
	Generator bool
	// ClusterNamespace is where the Secrets of the cluster will be.
	ClusterNamespace string
	// Requester is who asks.
	Requester string
}

// User is the user of the certificate.
func (r Request) User() string {
	if r.Generator {
		return Generator
	}
	return User(r.Cluster)
}

// Renewal tells whether the requester asks for what he is already.
func (r Request) Renewal() bool { return r.Requester == r.User() }

// Recognize reads a CertificateSigningRequest. It is false for one that is not
// about an agent: another signer, more or less than the usages of a client, more
// names than that of the agent.
func Recognize(csr *certificatesv1.CertificateSigningRequest) (Request, bool) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !clientUsages(csr.Spec.Usages) {
		return Request{}, false
	}
	asked, ok := parse(csr.Spec.Request)
	if !ok || !slices.Equal(asked.Subject.Organization, []string{Group}) ||
		len(asked.DNSNames)+len(asked.EmailAddresses)+len(asked.IPAddresses)+len(asked.URIs) > 0 {
		return Request{}, false
	}
	cluster, ok := strings.CutPrefix(asked.Subject.CommonName, UserPrefix)
	if !ok {
		return Request{}, false
	}
	request := Request{Cluster: cluster, Requester: csr.Spec.Username}
	request.ClusterNamespace = cmp.Or(csr.Annotations[ClusterNamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster)
	if cluster == reserved {
		request.Cluster, request.Generator = "", true
	}
	return request, true
}

func parse(encoded []byte) (*x509.CertificateRequest, bool) {
	block, rest := pem.Decode(encoded)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, false
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	return asked, err == nil
}

// clientUsages tells whether these are the usages of a client: digital signature
// and client auth, with or without key encipherment.
func clientUsages(usages []certificatesv1.KeyUsage) bool {
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
