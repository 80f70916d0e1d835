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
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

const (
	// generatorPrefix is the prefix of the name of the CertificateSigningRequest for the user that
	// creates agents' roles (the "generator"). The cluster's name and five random characters follow the
	// prefix.
	generatorPrefix = "agent-rbac-generator-"
	generatorBits   = 3072
)

// agentIdentity is the agent's user in the control plane, with the objects that this run created for
// this user in the control plane.
type agentIdentity struct {
	register Register
	// id is the member's identity.
	id string

	// certificate and key are the agent's credentials, in PEM.
	certificate, key []byte
	// request is the agent's CertificateSigningRequest. It is nil before it is created.
	request *certificatesv1.CertificateSigningRequest
	// endpoint is the control plane. holder is a client for it with the token's permissions.
	endpoint *discoveredEndpoint
	holder   *clusterclient.Client
	// karmada is a client for the control plane with the agent's permissions. generator is the client
	// that grants these permissions. It is nil if the control plane itself grants them.
	karmada, generator *clusterclient.Client
	// omitEndpoint is true if the control plane does not accept the member's address.
	omitEndpoint bool
}

// obtain requests the agent's certificate. It then ensures that the agent has its permissions, and that
// no Cluster with the agent's cluster name exists.
func (a *agentIdentity) obtain(ctx context.Context, found *discoveredEndpoint) error {
	r := a.register
	holder, err := clusterclient.NewKarmada(found.newConfig(r.Token, nil, nil), r.Log)
	if err != nil {
		return err
	}
	a.endpoint, a.holder = found, holder
	key, encoded, err := newKey()
	if err != nil {
		return err
	}
	r.logf("[karmada-agent-start] Requesting the certificate of %s from the control plane", agent.User(r.Name))
	request, err := r.signingRequest(r.Name+"-"+utilrand.String(5), agent.User(r.Name), key)
	if err != nil {
		return err
	}
	a.key, a.request = encoded, request
	certificate, err := r.requestCertificate(ctx, holder, request)
	if err != nil {
		return err
	}
	if err := a.useCertificate(certificate); err != nil {
		return err
	}
	missing, err := a.awaitPermissions(ctx)
	if err != nil {
		return err
	}
	if missing != "" {
		r.logf("[karmada-agent-start] The control plane has not granted the agent the permission to %s: granting it with a certificate of %s",
			missing, agent.GeneratorUser)
		if err := a.grantPermissions(ctx, found, holder); err != nil {
			return err
		}
	}
	return a.dryRunCluster(ctx)
}

// useCertificate makes the agent's certificate the credential for further requests.
func (a *agentIdentity) useCertificate(certificate []byte) (err error) {
	a.certificate = certificate
	a.karmada, err = clusterclient.NewKarmada(a.endpoint.newConfig("", a.certificate, a.key), a.register.Log)
	return err
}

// newConfig returns a client configuration for the control plane, with either a token or a certificate
// as the credential.
func (d *discoveredEndpoint) newConfig(token string, certificate, key []byte) *rest.Config {
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
		return nil, nil, fmt.Errorf("generating the key of the agent: %w", err)
	}
	return key, encoded, nil
}

// signingRequest returns a CertificateSigningRequest for the given user's client certificate.
func (r Register) signingRequest(name, user string, key any) (*certificatesv1.CertificateSigningRequest, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agent.Group}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate request of %s: %w", user, err)
	}
	seconds := int32(r.CertExpiration / time.Second)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: registration.SystemLabels()},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
				certificatesv1.UsageClientAuth},
		},
	}
	request.Annotations = map[string]string{clusterv1alpha1.AgentRequestTimeoutAnnotation: r.Timeout.String()}
	if r.ClusterNamespace != clusterv1alpha1.NamespaceKarmadaCluster {
		request.Annotations[clusterv1alpha1.ClusterNamespaceAnnotation] = r.ClusterNamespace
	}
	return request, nil
}

// requestCertificate creates a CertificateSigningRequest and waits for the certificate. If the request
// is denied, it immediately returns an error with the reason.
func (r Register) requestCertificate(ctx context.Context, holder *clusterclient.Client,
	request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	if err := holder.API.Create(ctx, request); err != nil {
		return nil, r.explainTokenError(holder.WrapError("creating", request, err), err)
	}
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var certificate []byte
	pace := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := holder.Get(ctx, request)
		if err != nil {
			// Retry, because a single failed read does not prove that the request no longer exists.
			return false, onlyDenied(err)
		}
		if have == nil {
			return false, fmt.Errorf("%s was deleted before it was approved", holder.Describe(request))
		}
		stored := have.(*certificatesv1.CertificateSigningRequest)
		certificate = stored.Status.Certificate
		return len(certificate) > 0, denialReason(stored)
	})
	switch {
	case err == nil && len(certificate) > 0:
		return certificate, nil
	case ctx.Err() != nil:
		return nil, holder.WrapError("waiting for", request, context.Cause(ctx))
	case err == nil || wait.Interrupted(err):
		return nil, fmt.Errorf("%s got no certificate from %s within %s: check that karmada-controller-manager (which approves) and kube-controller-manager (which signs) run there; to approve it yourself, run: kubectl certificate approve %s",
			holder.Describe(request), holder.Name, r.Timeout, request.Name)
	}
	return nil, fmt.Errorf("the control plane (%s) does not accept %q as a member: %w", holder.Host, r.Name, err)
}

// onlyDenied returns err if it is a Forbidden or Unauthorized error. Otherwise it returns nil.
func onlyDenied(err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// denialReason returns an error with the reason why the certificate will not be issued. It returns nil
// if the certificate may still be issued.
func denialReason(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		switch condition.Type {
		case agent.ConditionNotApproved:
			return errors.New(condition.Message)
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return fmt.Errorf("certificate request %s is %s: %s %s", request.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	return nil
}

// explainTokenError adds the token's probable problem to the error explained, according to err.
func (r Register) explainTokenError(explained, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\nThe token is unknown, has expired or lacks the usage authentication: create a new one with karmadactl token create", explained)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w\nThe token is not in group %s: create one without --groups with karmadactl token create", explained,
			agent.BootstrapGroup)
	}
	return explained
}

// ensureNameUnused returns a RegisteredError if a Cluster with the given name exists.
func (a *agentIdentity) ensureNameUnused(ctx context.Context, karmada *clusterclient.Client) error {
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a.register.Name}})
	if err != nil || have == nil {
		return err
	}
	return &registration.RegisteredError{Name: a.register.Name, ID: a.id, Existing: *have.(*clusterv1alpha1.Cluster)}
}

// grantPermissions grants the agent its permissions. obtain calls it if the control plane does not
// grant them itself.
func (a *agentIdentity) grantPermissions(ctx context.Context, found *discoveredEndpoint, holder *clusterclient.Client) error {
	r := a.register
	key, err := rsa.GenerateKey(rand.Reader, generatorBits)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("generating a key: %w", err)
	}
	request, err := r.signingRequest(generatorPrefix+r.Name+utilrand.String(5), agent.GeneratorUser, key)
	if err != nil {
		return err
	}
	certificate, err := r.requestCertificate(ctx, holder, request)
	if err != nil {
		return err
	}
	if a.generator, err = clusterclient.NewKarmada(found.newConfig("", certificate, encoded), r.Log); err != nil {
		return err
	}
	defer func() {
		// Delete the generator's request, because its certificate grants all permissions in the control
		// plane and is no longer needed.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterclient.RollbackTimeout)
		defer cancel()
		if err := a.generator.Delete(ctx, request); err != nil {
			r.logf("warning: %v", err)
		}
	}()
	if err := a.ensureNameUnused(ctx, a.generator); err != nil {
		return err
	}
	keepExisting := func(client.Object) error { return nil }
	for _, name := range []string{r.ClusterNamespace, work.ExecutionNamespace(r.Name)} {
		if _, err := a.generator.Ensure(ctx, registration.NewNamespace(name), keepExisting); err != nil {
			return err
		}
	}
	for _, object := range agent.RBACObjects(r.Name, r.ClusterNamespace) {
		if _, err := a.generator.Ensure(ctx, object, func(have client.Object) error { return adoptPermissions(have, object) }); err != nil {
			return err
		}
	}
	missing, err := a.awaitPermissions(ctx)
	if err == nil && missing != "" {
		return fmt.Errorf("the control plane (%s) does not allow %s to %s although the permission was granted: check its authorization mode",
			found.host, agent.User(r.Name), missing)
	}
	return err
}

// adoptPermissions adds missing rules or subjects to an existing role or binding. It removes nothing,
// because another registration may use the object.
func adoptPermissions(have client.Object, want agent.Object) error {
	registration.AddLabels(have, want)
	switch have := have.(type) {
	case *rbacv1.ClusterRole:
		have.Rules = addRules(have.Rules, want.(*rbacv1.ClusterRole).Rules)
	case *rbacv1.Role:
		have.Rules = addRules(have.Rules, want.(*rbacv1.Role).Rules)
	case *rbacv1.ClusterRoleBinding:
		return enroll.AdoptBinding(have, want.(*rbacv1.ClusterRoleBinding))
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

// rollBack deletes the agent's Cluster in the control plane. It also deletes the agent's permissions if
// this run granted them.
func (a *agentIdentity) rollBack(ctx context.Context) error {
	if a.karmada == nil {
		if err := a.awaitLateCertificate(ctx); err != nil || a.karmada == nil {
			return err
		}
	}
	var errs []error
	created, err := a.karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a.register.Name}})
	if cluster, ok := created.(*clusterv1alpha1.Cluster); ok && cluster.Spec.ID == a.id && cluster.Spec.SyncMode == clusterv1alpha1.Pull &&
		a.isCreatedByThisRun(cluster) {
		errs = append(errs, a.karmada.Delete(ctx, cluster))
	}
	errs = append(errs, ignoreForbidden(err))
	if a.generator != nil {
		return errors.Join(append(errs, a.generator.RollBack(ctx), ignoreForbidden(a.generator.Delete(ctx, a.request)))...)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(a.register.Name)}}
	have, err := a.karmada.Get(ctx, role)
	if have != nil && have.GetLabels()[clusterv1alpha1.AgentLabel] == a.register.Name &&
		have.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation] == string(a.request.UID) {
		errs = append(errs, a.karmada.Delete(ctx, have))
	}
	return errors.Join(append(errs, ignoreForbidden(err))...)
}

const (
	// lateApprovalTime is how long after a failed registration its request may still be approved,
	// because the control plane may have made its decision just before.
	lateApprovalTime = 2 * time.Second
	// lateIssueTime is how long the signer may take to issue the certificate of an approved request.
	lateIssueTime    = 10 * time.Second
	latePollInterval = 100 * time.Millisecond
)

// awaitLateCertificate waits for the certificate if the request was approved while this run failed. The
// rollback can free the cluster's name only with the certificate. Without an approval,
// awaitLateCertificate returns soon and without an error, because the control plane does not approve
// the request after Register.Timeout. If the user interrupts this run earlier, the control plane may
// still approve the request until then.
func (a *agentIdentity) awaitLateCertificate(ctx context.Context) error {
	if a.request == nil || a.request.UID == "" {
		return nil
	}
	start := time.Now()
	var certificate []byte
	err := wait.PollUntilContextCancel(ctx, latePollInterval, true, func(ctx context.Context) (done bool, err error) {
		have, err := a.holder.Get(ctx, a.request)
		if err != nil || have == nil {
			return true, err
		}
		stored := have.(*certificatesv1.CertificateSigningRequest)
		certificate = stored.Status.Certificate
		return len(certificate) > 0 || !mayBeIssued(stored, time.Since(start)), nil
	})
	if err != nil || len(certificate) == 0 {
		return err
	}
	return a.useCertificate(certificate)
}

// mayBeIssued reports whether the request's certificate may still be issued after the rollback has
// waited for the given time.
func mayBeIssued(request *certificatesv1.CertificateSigningRequest, waited time.Duration) bool {
	limit := lateApprovalTime
	if isApproved(request) {
		limit = lateIssueTime
	}
	return denialReason(request) == nil && waited <= limit
}

func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(condition certificatesv1.CertificateSigningRequestCondition) bool {
		return condition.Type == certificatesv1.CertificateApproved
	})
}

// isCreatedByThisRun reports whether the Cluster was created after this run's
// CertificateSigningRequest.
func (a *agentIdentity) isCreatedByThisRun(cluster *clusterv1alpha1.Cluster) bool {
	return a.request != nil && !cluster.CreationTimestamp.Before(&a.request.CreationTimestamp)
}

// newKubeconfig returns the agent's kubeconfig for the control plane.
func (r Register) newKubeconfig(found *discoveredEndpoint, certificate, key []byte) ([]byte, error) {
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

// kubeconfigSecret returns the member's Secret that contains the agent's kubeconfig.
func (r Register) kubeconfigSecret(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: AgentKubeconfig, Labels: registration.SystemLabels()},
		Data:       map[string][]byte{AgentKubeconfig: kubeconfig},
	}
}
