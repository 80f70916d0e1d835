// Package pull registers clusters in pull mode, with an agent that connects to the control
// plane, and unregisters them.
//
// A registration starts with a bootstrap token, with which it verifies the control plane and requests
// the agent's certificate. Unregistering deletes the propagated objects first and the agent last.
//
// Invariants: no data is sent to a control plane before it is verified. A failed registration deletes
// exactly the objects that the registration and its agent created in the control plane and in the
// member.
package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
	"karmada.io/karmada/internal/version"
)

const (
	// DefaultRegisterTimeout is the default limit for each wait of a registration: for the signed
	// cluster-info, for the certificate, and for the agent to be ready.
	DefaultRegisterTimeout = 5 * time.Minute

	// DefaultCertExpiration is the default requested lifetime of the agent's certificate.
	DefaultCertExpiration = 365 * 24 * time.Hour

	// AgentName is the name of the agent's Deployment and of the agent's roles in the member.
	AgentName = "karmada-agent"
)

// DefaultAgentImage returns the name that the build gives to the image that contains all programs, with
// this program's version. Nodes have this image only after it was loaded into them.
func DefaultAgentImage() string {
	return "localhost/karmada/karmada:" + version.Get().ImageTag()
}

// Register registers a cluster in pull mode. Its only credential is a bootstrap token.
type Register struct {
	// Endpoint is the control plane's address in the form host:port.
	Endpoint string
	// Name is the Cluster's name: a DNS label of at most 48 characters.
	Name string
	// Namespace is the agent's namespace in the member. The default is karmada-system.
	Namespace string
	// ClusterNamespace is the control plane's namespace for the cluster's Secrets. The default is
	// karmada-cluster.
	ClusterNamespace string
	// Token is the bootstrap token. CAHashes are pins, one of which the control plane's certificate
	// authority must match. CAHashes may be empty only with SkipCAVerification, which allows everyone
	// who knows the token to perform a man-in-the-middle attack.
	Token              string
	CAHashes           []string
	SkipCAVerification bool
	// Provider, Region and Zones are the cluster's location. All may be empty.
	Provider, Region string
	Zones            []string
	// MemberRole is the ClusterRole in the member that limits the agent's permissions there. Empty
	// means that the agent has all permissions. If MemberRole is set, the control plane gets no account
	// in the member.
	MemberRole string
	// ProxyURL is the proxy through which the control plane reaches the member.
	ProxyURL string
	// Image is the agent's image. The default is this version's image. Replicas is the agent's number
	// of replicas. The default is 1.
	Image    string
	Replicas int32
	// CertExpiration is the requested lifetime of the agent's certificate. The default is one year. The
	// control plane may issue a certificate with a shorter lifetime.
	CertExpiration time.Duration
	// CertRotation makes the agent renew its certificate before it expires.
	CertRotation bool
	// DryRun performs only the checks that need no certificate. It changes nothing, and logs what would
	// be created.
	DryRun bool
	// Timeout limits each wait. The default is 5 minutes.
	Timeout time.Duration
	// Member is the client configuration for the cluster.
	Member *rest.Config
	// MemberOrigin describes in messages where Member was read from. If it is empty, messages do not
	// describe this.
	MemberOrigin string
	// Log receives progress messages for the user. It may be nil.
	Log func(format string, args ...any)

	// omitEndpoint is true if the control plane does not accept the address in Member. The agent then
	// reports the address at which it reaches the API server from its Pod.
	omitEndpoint bool
}

// Run registers the cluster. It returns when the agent is ready and has created the Cluster. If Run
// fails or ctx ends, Run deletes the objects that were created in the control plane and in the member.
func (r Register) Run(ctx context.Context) (err error) {
	r = r.withDefaults()
	if err := r.validate(); err != nil {
		return err
	}
	member, err := clusterclient.NewMember(r.Name, r.Member, r.Log)
	if err != nil {
		return err
	}
	member.DryRun = r.DryRun
	id, err := r.preflight(ctx, member)
	if err != nil {
		return err
	}
	agentObjects, err := r.missingAgentObjects(ctx, member)
	if err != nil {
		return err
	}
	found, err := r.discoverControlPlane(ctx)
	if err != nil {
		return err
	}
	if err := r.rejectControlPlane(ctx, member); err != nil {
		return err
	}
	if err := r.verifyTokenPermissions(ctx, found); err != nil {
		return err
	}
	if r.DryRun {
		return r.installAgent(ctx, member, nil)
	}
	identity := &agentIdentity{register: r, id: id}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.rollBack(ctx, identity, member, agentObjects))
		}
	}()
	if err := identity.obtain(ctx, found); err != nil {
		return err
	}
	r.omitEndpoint = identity.omitEndpoint
	if err := r.verifyOwner(ctx, member, identity.karmada); err != nil {
		return err
	}
	kubeconfig, err := r.newKubeconfig(found, identity.certificate, identity.key)
	if err != nil {
		return err
	}
	if err := r.installAgent(ctx, member, kubeconfig); err != nil {
		return err
	}
	if err := r.awaitRollout(ctx, member); err != nil {
		return err
	}
	return r.awaitCluster(ctx, identity.karmada)
}

// awaitCluster waits until the agent has created the Cluster, because an available Pod does not
// prove that the agent reaches the control plane.
func (r Register) awaitCluster(ctx context.Context, karmada *clusterclient.Client) error {
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := karmada.Get(ctx, cluster)
		// Retry, because a single failed read does not prove that the Cluster does not exist.
		return have != nil, onlyDenied(err)
	})
	switch {
	case ctx.Err() != nil:
		return karmada.WrapError("waiting for", cluster, context.Cause(ctx))
	case wait.Interrupted(err):
		return fmt.Errorf("the agent of member %q runs, but has created no Cluster within %s: see its log; the agent must reach %s from the member, and its image %s must contain karmada-agent",
			r.Name, r.Timeout, r.Endpoint, r.Image)
	}
	return err
}

func (r Register) withDefaults() Register {
	r.Namespace = cmp.Or(r.Namespace, clusterv1alpha1.NamespaceKarmadaSystem)
	r.ClusterNamespace = cmp.Or(r.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	r.Image = cmp.Or(r.Image, DefaultAgentImage())
	r.Replicas = cmp.Or(r.Replicas, 1)
	r.CertExpiration = cmp.Or(r.CertExpiration, DefaultCertExpiration)
	r.Timeout = cmp.Or(r.Timeout, DefaultRegisterTimeout)
	return r
}

// Validate returns an error if the options are invalid. It sends no requests.
func (r Register) Validate() error { return r.withDefaults().validate() }

func (r Register) validate() error {
	if err := registration.ValidateName(r.Name); err != nil {
		return err
	}
	if !agent.IsValidName(r.Name) {
		return fmt.Errorf("cluster name %q: no cluster with an agent can have this name; choose another one", r.Name)
	}
	if err := validateEndpoint(r.Endpoint); err != nil {
		return err
	}
	if _, err := registration.ParseToken(r.Token); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if _, err := r.parsePins(); err != nil {
		return err
	}
	if len(r.CAHashes) == 0 && !r.SkipCAVerification {
		return errors.New("the hash of the control plane's certificate authority is missing: get it with karmadactl token create --print-register-command")
	}
	switch {
	case r.Timeout <= 0:
		return fmt.Errorf("timeout %s: it must be positive", r.Timeout)
	case r.Replicas < 0:
		return fmt.Errorf("%d replicas of the agent: the number must not be negative", r.Replicas)
	case r.CertExpiration < minExpiration:
		return fmt.Errorf("certificate expiration: it must be at least %s, not %s", minExpiration, r.CertExpiration)
	}
	return nil
}

// minExpiration is the minimum lifetime that can be requested for a certificate.
const minExpiration = 10 * time.Minute

// validateEndpoint returns an error if the endpoint is not of the form host:port.
func validateEndpoint(endpoint string) error {
	if strings.Contains(endpoint, "/") {
		return fmt.Errorf("endpoint %q: write host:port, without scheme and path", endpoint)
	}
	host, port, err := net.SplitHostPort(endpoint)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || portErr != nil || number == 0 {
		return fmt.Errorf("endpoint %q: write host:port, such as 192.0.2.1:5443", endpoint)
	}
	return nil
}

func (r Register) parsePins() ([]registration.Pin, error) {
	var pins []registration.Pin
	for _, hash := range r.CAHashes {
		pin, err := registration.ParsePin(hash)
		if err != nil {
			return nil, fmt.Errorf("the hash of the certificate authority: %w", err)
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// rollBack deletes the created objects. It begins with the agent, so that the agent does not use
// deleted credentials. It ends with the objects that the agent created, because the agent then has no
// permissions to create them again.
func (r Register) rollBack(ctx context.Context, identity *agentIdentity, member *clusterclient.Client, agentObjects []client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterclient.RollbackTimeout)
	defer cancel()
	deleteAgentObjects := func(ctx context.Context) error { return r.deleteAgentObjects(ctx, member, agentObjects) }
	revertBinding := func(ctx context.Context) error { return r.revertBinding(ctx, member) }
	var errs []error
	for _, revert := range []func(context.Context) error{member.RollBack, revertBinding, identity.rollBack, deleteAgentObjects} {
		if err := revert(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cleaning up: %w", err))
		}
	}
	return errors.Join(errs...)
}

// verifyOwner reads the control plane's ID, and returns an error if another control plane has accounts
// for a Cluster with this name in the member.
func (r Register) verifyOwner(ctx context.Context, member, karmada *clusterclient.Client) error {
	if err := member.ReadOwner(ctx, karmada); err != nil {
		return err
	}
	return enroll.Grant{Cluster: r.Name, Namespace: r.ClusterNamespace, Member: member}.VerifyOwner(ctx)
}

// missingAgentObjects returns the objects that the agent will create in the member at its start, except
// for objects that already exist. Some of the objects are accounts with all permissions.
func (r Register) missingAgentObjects(ctx context.Context, member *clusterclient.Client) (absent []client.Object, err error) {
	accounts := enroll.Cleanup{Cluster: r.Name, Namespace: r.ClusterNamespace}
	for _, object := range append(accounts.Objects(), accounts.SharedObjects()...) {
		have, err := member.Get(ctx, object)
		if err != nil {
			return nil, err
		}
		if have == nil {
			absent = append(absent, object)
		}
	}
	return absent, nil
}

// deleteAgentObjects deletes the objects that the agent created in the member. If other control planes
// use an existing object, it only removes this control plane's ID from the object.
func (r Register) deleteAgentObjects(ctx context.Context, member *clusterclient.Client, agentObjects []client.Object) error {
	var errs []error
	for _, object := range agentObjects {
		have, err := member.Get(ctx, object)
		if err == nil && have != nil {
			err = member.DeleteUnused(ctx, have)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, enroll.Cleanup{Namespace: r.ClusterNamespace}.ReleaseShared(ctx, member))...)
}

// preflight returns the member's identity, or an error if the member already contains an agent's
// objects.
func (r Register) preflight(ctx context.Context, member *clusterclient.Client) (id string, err error) {
	r.logf("[preflight] Running pre-flight checks")
	if id, err = member.Identify(ctx, r.MemberOrigin); err != nil {
		return "", err
	}
	if err := r.verifyMemberRole(ctx, member); err != nil {
		return "", err
	}
	var findings []error
	for _, object := range []client.Object{r.kubeconfigSecret(nil), r.agentServiceAccount(), r.agentDeployment()} {
		have, err := member.Get(ctx, object)
		if err != nil {
			return "", err
		}
		if have != nil {
			findings = append(findings, fmt.Errorf("%s exists in %s", member.Describe(have), member.Name))
		}
	}
	if len(findings) > 0 {
		return "", &PreflightError{Findings: findings, Member: r.Name}
	}
	r.logf("[preflight] All pre-flight checks were passed")
	return id, nil
}

// rejectControlPlane returns an error if the member is the control plane itself. Only the control plane
// has a cluster-info that is signed with the token's secret. If cluster-info may not be read,
// rejectControlPlane returns nil, because this check only detects a wrong kubeconfig.
func (r Register) rejectControlPlane(ctx context.Context, member *clusterclient.Client) error {
	token, err := registration.ParseToken(r.Token)
	if err != nil {
		return err
	}
	have, err := member.Get(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic,
		Name: bootstrapapi.ConfigMapClusterInfo}})
	info, ok := have.(*corev1.ConfigMap)
	if err != nil || !ok {
		return nil //nolint:nilerr // see above
	}
	if _, err := verifyClusterInfo(info, token); err != nil {
		return nil //nolint:nilerr // not signed with this token
	}
	return fmt.Errorf("the kubeconfig of %s leads to the control plane itself (%s): choose the context of the member with --context",
		member.Name, member.Host)
}

// PreflightError lists the objects in the member that prevent a registration.
type PreflightError struct {
	Findings []error
	// Member is the name of the cluster to be registered.
	Member string
}

func (p *PreflightError) Error() string {
	text := "[preflight] some fatal errors occurred:"
	for _, finding := range p.Findings {
		text += "\n\t[ERROR]: " + finding.Error()
	}
	return text + "\nAn agent is or was installed here, and nothing was changed: unregister it first, or delete its remaining objects"
}

func (r Register) logf(format string, args ...any) { registration.Log(r.Log).Printf(format, args...) }
