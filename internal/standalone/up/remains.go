package up

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/pull"
)

// remains is what there is of a registration that ended before its Cluster was
// there. What is absent is nil.
type remains struct {
	cluster string
	// token is the ID of the token that this installation chose for it, and ca the
	// authority of the control plane.
	token string
	ca    *x509.Certificate

	requests   []certificatesv1.CertificateSigningRequest
	role       *rbacv1.ClusterRole
	secret     *corev1.Secret
	account    *corev1.ServiceAccount
	deployment *appsv1.Deployment
}

// goesOn tells whether an agent is in the member that has all it needs and makes
// the Cluster by itself.
func (r remains) goesOn() bool {
	return r.ownRole() && r.ownAgent() && r.account != nil
}

// discarded are the objects of each side that stand in the way of another try, in
// the order in which they have to go: what proves whose they are goes last, so that
// this can be interrupted too. What does not carry the marks of this registration is
// not among them.
func (r remains) discarded() (karmada, member []client.Object) {
	for i := range r.requests {
		// A request that is still open would make its holder the agent.
		if r.requests[i].Spec.Username == r.requester() {
			karmada = append(karmada, &r.requests[i])
		}
	}
	if r.ownRole() {
		karmada = append(karmada, r.role)
	}
	if !r.ownSecret() || r.deployment != nil && !r.ownAgent() || r.account != nil && !isSystem(r.account) {
		return karmada, nil
	}
	if r.deployment != nil {
		member = append(member, r.deployment)
	}
	if r.account != nil {
		member = append(member, r.account)
	}
	return karmada, append(member, r.secret)
}

// requester is the user that the holder of the token is.
func (r remains) requester() string { return bootstrapapi.BootstrapUserPrefix + r.token }

// ownRole tells whether the agent's role was granted to the holder of the token.
func (r remains) ownRole() bool {
	return r.role != nil && r.role.Labels[agent.ManagedLabel] == r.cluster &&
		r.role.Annotations[agent.RequesterAnnotation] == r.requester()
}

// ownSecret tells whether the member holds a certificate for its agent that this
// control plane has issued.
func (r remains) ownSecret() bool {
	if r.secret == nil || !isSystem(r.secret) {
		return false
	}
	config, err := clientcmd.Load(r.secret.Data[pull.AgentKubeconfig])
	if err != nil || config.AuthInfos[r.cluster] == nil {
		return false
	}
	block, _ := pem.Decode(config.AuthInfos[r.cluster].ClientCertificateData)
	if block == nil {
		return false
	}
	issued, err := x509.ParseCertificate(block.Bytes)
	return err == nil && issued.Subject.CommonName == agent.User(r.cluster) &&
		bytes.Equal(issued.RawIssuer, r.ca.RawSubject) && issued.CheckSignatureFrom(r.ca) == nil
}

// ownAgent tells whether the Deployment is the agent of this cluster, with the
// certificate.
func (r remains) ownAgent() bool {
	if r.deployment == nil || !r.ownSecret() {
		return false
	}
	return slices.ContainsFunc(r.deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == pull.AgentName && slices.Contains(c.Command, "--cluster-name="+r.cluster)
	})
}

// isSystem reports whether an installation of Karmada owns an object.
func isSystem(object client.Object) bool {
	return object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue
}
