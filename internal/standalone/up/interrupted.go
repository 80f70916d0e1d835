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

// interruptedRegistration contains the objects of a registration that ended before its Cluster was
// created. A field is nil if its object does not exist.
type interruptedRegistration struct {
	cluster string
	// token is the ID of the bootstrap token that this installation generated for the registration. ca
	// is the control plane's CA certificate.
	token string
	ca    *x509.Certificate

	requests   []certificatesv1.CertificateSigningRequest
	role       *rbacv1.ClusterRole
	secret     *corev1.Secret
	account    *corev1.ServiceAccount
	deployment *appsv1.Deployment
}

// canContinue reports whether the agent in the member has everything that it needs to create the
// Cluster.
func (r interruptedRegistration) canContinue() bool {
	return r.hasOwnRole() && r.hasOwnAgent() && r.account != nil
}

// objectsToDelete returns the objects in the control plane and in the member that prevent another
// registration, in deletion order. The agent's Secret proves that the member's objects belong to this
// registration. It is last, so that an interrupted deletion can be repeated. The result does not
// contain other owners' objects.
func (r interruptedRegistration) objectsToDelete() (karmada, member []client.Object) {
	for i := range r.requests {
		// If a user approved the pending request, a second agent would be created.
		if r.requests[i].Spec.Username == r.requester() {
			karmada = append(karmada, &r.requests[i])
		}
	}
	if r.hasOwnRole() {
		karmada = append(karmada, r.role)
	}
	if !r.hasOwnSecret() || r.deployment != nil && !r.hasOwnAgent() || r.account != nil && !isKarmadaSystem(r.account) {
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

// requester returns the user name that the bootstrap token authenticates.
func (r interruptedRegistration) requester() string {
	return bootstrapapi.BootstrapUserPrefix + r.token
}

// hasOwnRole reports whether the agent's role was granted to the token's holder.
func (r interruptedRegistration) hasOwnRole() bool {
	return r.role != nil && r.role.Labels[clusterv1alpha1.AgentLabel] == r.cluster &&
		r.role.Annotations[clusterv1alpha1.AgentRequesterAnnotation] == r.requester()
}

// hasOwnSecret reports whether the member has a certificate for its agent that this control plane
// issued.
func (r interruptedRegistration) hasOwnSecret() bool {
	if r.secret == nil || !isKarmadaSystem(r.secret) {
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

// hasOwnAgent reports whether the Deployment is this cluster's agent and uses the certificate in the
// Secret.
func (r interruptedRegistration) hasOwnAgent() bool {
	if r.deployment == nil || !r.hasOwnSecret() {
		return false
	}
	return slices.ContainsFunc(r.deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == pull.AgentName && slices.Contains(c.Command, "--cluster-name="+r.cluster)
	})
}

// isKarmadaSystem reports whether the object has the label of Karmada's own objects.
func isKarmadaSystem(object client.Object) bool {
	return object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue
}
