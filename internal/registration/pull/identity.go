package pull

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

const (
	// generatorPrefix, followed by the name of the cluster and five characters, is
	// the request of the Generator.
	generatorPrefix = "agent-rbac-generator-"
	generatorBits   = 3072
)

// identity is who the agent is in the control plane, and what this run has made
// there to become it.
type identity struct {
	register Register
	// id is the identity of the member.
	id string

	// certificate and key are those of the agent, PEM encoded.
	certificate, key []byte
	// request is what the certificate was asked for with.
	request *certificatesv1.CertificateSigningRequest
	// karmada is the control plane as the agent sees it, generator as one who grants
	// its rights sees it, where that was needed.
	karmada, generator *side.Side
}

// obtain gets the certificate of the agent and sees to it that it has its rights,
// and that the name is free.
func (i *identity) obtain(ctx context.Context, found *discovered) error {
	r := i.register
	holder, err := side.Karmada(found.config(r.Token, nil, nil), r.Log)
	if err != nil {
		return err
	}
	key, encoded, err := newKey()
	if err != nil {
		return err
	}
	r.logf("[karmada-agent-start] Asking the control plane for the certificate of %s", agent.User(r.Name))
	request, err := r.signingRequest(r.Name+"-"+utilrand.String(5), agent.User(r.Name), key)
	if err != nil {
		return err
	}
	if i.certificate, err = r.certificate(ctx, holder, request); err != nil {
		return err
	}
	i.key, i.request = encoded, request
	if i.karmada, err = side.Karmada(found.config("", i.certificate, i.key), r.Log); err != nil {
		return err
	}
	missing, err := i.missingRight(ctx)
	if err != nil {
		return err
	}
	if missing != "" {
		r.logf("[karmada-agent-start] The control plane does not let the agent %s by itself: granting it with a certificate of %s", missing, agent.Generator)
		if err := i.grantRights(ctx, found, holder); err != nil {
			return err
		}
	}
	return i.rehearse(ctx)
}

// config is how the control plane is reached, with a token or a certificate.
func (d *discovered) config(token string, certificate, key []byte) *rest.Config {
	return &rest.Config{
		Host: d.host, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: d.ca, CertData: certificate, KeyData: key},
	}
}

func newKey() (key *ecdsa.PrivateKey, encoded []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
		encoded, err = keyutil.MarshalPrivateKeyToPEM(key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of the agent: %w", err)
	}
	return key, encoded, nil
}

// signingRequest asks for a certificate of the user.
func (r Register) signingRequest(name, user string, key any) (*certificatesv1.CertificateSigningRequest, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agent.Group}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate request of %s: %w", user, err)
	}
	seconds := int32(r.CertExpiration / time.Second)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: registration.SystemLabels()},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: &seconds,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	if r.ClusterNamespace != clusterv1alpha1.NamespaceKarmadaCluster {
		request.Annotations = map[string]string{agent.ClusterNamespaceAnnotation: r.ClusterNamespace}
	}
	return request, nil
}

// certificate sends a request and waits for the certificate. Who refuses it says
// why, and then nobody waits.
func (r Register) certificate(ctx context.Context, holder *side.Side, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	if err := holder.API.Create(ctx, request); err != nil {
		return nil, r.explainToken(holder.Explain("creating", request, err), err)
	}
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var certificate []byte
	pace := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := holder.Get(ctx, request)
		if err != nil {
			// One failed look says nothing about the request.
			return false, onlyRefused(err)
		}
		if have == nil {
			return false, fmt.Errorf("%s is gone: somebody deleted it", holder.Describe(request))
		}
		stored := have.(*certificatesv1.CertificateSigningRequest)
		certificate = stored.Status.Certificate
		return len(certificate) > 0, refusedBecause(stored)
	})
	switch {
	case err == nil && len(certificate) > 0:
		return certificate, nil
	case ctx.Err() != nil:
		return nil, holder.Explain("waiting for", request, context.Cause(ctx))
	case err == nil || wait.Interrupted(err):
		return nil, fmt.Errorf("%s got no certificate from %s within %s: see whether karmada-controller-manager (which approves) and kube-controller-manager (which signs) run there; a person can approve it with: kubectl certificate approve %s",
			holder.Describe(request), holder.Name, r.Timeout, request.Name)
	}
	return nil, fmt.Errorf("the control plane (%s) does not take %q as a member: %w", holder.Host, r.Name, err)
}

// onlyRefused forgets all errors but those that say that one may not ask.
func onlyRefused(err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// refusedBecause is why there will be no certificate.
func refusedBecause(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case agent.NotApproved:
			return errors.New(condition.Message)
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return fmt.Errorf("certificate request %s is %s: %s %s", request.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	return nil
}

// explainToken says what may be wrong with the token.
func (r Register) explainToken(explained, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\nThe token is unknown, has expired or lacks the usage authentication: make a new one with karmadactl token create", explained)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w\nThe token is not in group %s: make one without --groups with karmadactl token create", explained, agent.BootstrapGroup)
	}
	return explained
}

func (i *identity) nameIsFree(ctx context.Context, karmada *side.Side) error {
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: i.register.Name}})
	if err != nil || have == nil {
		return err
	}
	return &registration.RegisteredError{Name: i.register.Name, ID: i.id, By: *have.(*clusterv1alpha1.Cluster)}
}

// grantRights gives the agent its rights in a control plane that leaves it to
// those who register.
func (i *identity) grantRights(ctx context.Context, found *discovered, holder *side.Side) error {
	r := i.register
	key, err := rsa.GenerateKey(rand.Reader, generatorBits)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	request, err := r.signingRequest(generatorPrefix+r.Name+utilrand.String(5), agent.Generator, key)
	if err != nil {
		return err
	}
	certificate, err := r.certificate(ctx, holder, request)
	if err != nil {
		return err
	}
	if i.generator, err = side.Karmada(found.config("", certificate, encoded), r.Log); err != nil {
		return err
	}
	defer func() {
		// It is worth everything there, and nobody needs it any more.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), side.UndoTimeout)
		defer cancel()
		if err := i.generator.Delete(ctx, request); err != nil {
			r.logf("warning: %v", err)
		}
	}()
	if err := i.nameIsFree(ctx, i.generator); err != nil {
		return err
	}
	asIs := func(client.Object) error { return nil }
	for _, name := range []string{r.ClusterNamespace, agent.ExecutionNamespace(r.Name)} {
		if _, err := i.generator.Ensure(ctx, registration.Namespace(name), asIs); err != nil {
			return err
		}
	}
	for _, right := range agent.Rights(r.Name, r.ClusterNamespace) {
		if _, err := i.generator.Ensure(ctx, right, func(have client.Object) error { return adoptRight(have, right) }); err != nil {
			return err
		}
	}
	missing, err := i.missingRight(ctx)
	if err == nil && missing != "" {
		return fmt.Errorf("the control plane (%s) does not let %s %s, although it was granted: see its authorization mode", found.host, agent.User(r.Name), missing)
	}
	return err
}

// adoptRight adds what is missing to a right that is there already, and takes nothing
// away: somebody else may be registering.
func adoptRight(have client.Object, want agent.Object) error {
	registration.AddLabels(have, want)
	switch have := have.(type) {
	case *rbacv1.ClusterRole:
		have.Rules = addRules(have.Rules, want.(*rbacv1.ClusterRole).Rules)
	case *rbacv1.Role:
		have.Rules = addRules(have.Rules, want.(*rbacv1.Role).Rules)
	case *rbacv1.ClusterRoleBinding:
		return grant.AdoptBinding(have, want.(*rbacv1.ClusterRoleBinding))
	case *rbacv1.RoleBinding:
		have.Subjects = want.(*rbacv1.RoleBinding).Subjects
	}
	return nil
}

func addRules(have, want []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, rule := range want {
		if !slices.ContainsFunc(have, func(other rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(rule, other) }) {
			have = append(have, rule)
		}
	}
	return have
}

// giveUp deletes what the agent has made of itself in the control plane, and its
// rights if this run brought them.
func (i *identity) giveUp(ctx context.Context) error {
	if i.karmada == nil {
		return nil
	}
	var errs []error
	made, err := i.karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: i.register.Name}})
	if cluster, ok := made.(*clusterv1alpha1.Cluster); ok && cluster.Spec.ID == i.id && cluster.Spec.SyncMode == clusterv1alpha1.Pull && i.since(cluster) {
		errs = append(errs, i.karmada.Delete(ctx, cluster))
	}
	errs = append(errs, ignoreForbidden(err))
	if i.generator != nil {
		return errors.Join(append(errs, i.generator.Undo(ctx), ignoreForbidden(i.generator.Delete(ctx, i.request)))...)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(i.register.Name)}}
	have, err := i.karmada.Get(ctx, role)
	if have != nil && have.GetLabels()[agent.ManagedLabel] == i.register.Name && have.GetAnnotations()[agent.RequestAnnotation] == string(i.request.UID) {
		errs = append(errs, i.karmada.Delete(ctx, have))
	}
	return errors.Join(append(errs, ignoreForbidden(err))...)
}

// since tells whether the Cluster was made after the request, so by the agent of
// this run.
func (i *identity) since(cluster *clusterv1alpha1.Cluster) bool {
	return i.request != nil && !cluster.CreationTimestamp.Before(&i.request.CreationTimestamp)
}

// kubeconfig is what the agent reaches the control plane with.
func (r Register) kubeconfig(found *discovered, certificate, key []byte) ([]byte, error) {
	const karmada = "karmada-apiserver"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{karmada: {Server: found.host, CertificateAuthorityData: found.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{r.Name: {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{r.Name + "@" + karmada: {Cluster: karmada, AuthInfo: r.Name}},
		CurrentContext: r.Name + "@" + karmada,
	}
	encoded, err := clientcmd.Write(config)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of the agent: %w", err)
	}
	return encoded, nil
}

// credentials is the Secret of the member that holds the kubeconfig of the agent.
func (r Register) credentials(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: AgentKubeconfig, Labels: registration.SystemLabels()},
		Data:       map[string][]byte{AgentKubeconfig: kubeconfig},
	}
}
