// Package pull answers: how does a cluster become a member with an agent, which asks
// the control plane what to do, and how does it stop being one?
//
// Registering begins with a bootstrap token, with which the control plane proves who it
// is and the agent becomes who it is; unregistering takes back what the agent has done,
// and then the agent.
//
// Invariants: nothing is told to a control plane that is not known to be the right one.
// A registration that does not end well deletes what it and its agent have made on both
// sides, and nothing else.
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
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
	"karmada.io/karmada/internal/version"
)

const (
	// DefaultRegisterTimeout is how long each wait of a registration may take: for
	// the control plane to vouch for the token, for the certificate, and for the
	// agent to be ready.
	DefaultRegisterTimeout = 5 * time.Minute

	// DefaultCertExpiration is how long the certificate of an agent is asked for.
	DefaultCertExpiration = 365 * 24 * time.Hour

	// AgentName is the name of the agent's Deployment and roles in the member.
	AgentName = "karmada-agent"
)

// DefaultAgentImage is the image of the agent of this version.
func DefaultAgentImage() string {
	return "docker.io/karmada/karmada-agent:" + version.Get().GitVersion
}

// Register makes a cluster a member with an agent, which asks the control plane
// what to do. It begins with nothing but a bootstrap token.
type Register struct {
	// Endpoint is host:port of the control plane.
	Endpoint string
	// Name is the name of the Cluster: a DNS label of at most 48 characters.
	Name string
	// Namespace is that of the agent in the member. Default karmada-system.
	Namespace string
	// ClusterNamespace is that of the cluster's Secrets in the control plane.
	// Default karmada-cluster.
	ClusterNamespace string
	// Token is the bootstrap token, CAHashes are the pins of which the certificate
	// authority of the control plane must have one. They may be left out only with
	// SkipCAVerification, which lets everybody who knows the token stand in between.
	Token              string
	CAHashes           []string
	SkipCAVerification bool
	// Provider, Region and Zones are where the cluster is. All may be empty.
	Provider, Region string
	Zones            []string
	// MemberRole is the ClusterRole of the member that limits what the agent may do
	// there. Empty lets it do everything. With it the control plane gets no account in
	// the member.
	MemberRole string
	// ProxyURL is the proxy through which the control plane reaches the member.
	ProxyURL string
	// Image is that of the agent, Replicas how many of it run. Default: that of this
	// version, 1.
	Image    string
	Replicas int32
	// CertExpiration is how long the certificate of the agent is asked for. Default
	// a year, which control planes may shorten.
	CertExpiration time.Duration
	// CertRotation makes the agent renew its certificate in time.
	CertRotation bool
	// DryRun checks what can be checked without asking for a certificate and logs
	// what would be created.
	DryRun bool
	// Timeout is how long each wait may take. Default 5 minutes.
	Timeout time.Duration
	// Member leads to the cluster.
	Member *rest.Config
	// MemberOrigin says where Member was read from, for messages. It may be empty.
	MemberOrigin string
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
}

// Run registers the cluster and returns when its agent is ready and has made the
// Cluster. When it fails or ctx ends, what it has created is deleted again on
// both sides.
func (r Register) Run(ctx context.Context) (err error) {
	r = r.withDefaults()
	if err := r.validate(); err != nil {
		return err
	}
	member, err := side.Member(r.Name, r.Member, r.Log)
	if err != nil {
		return err
	}
	member.DryRun = r.DryRun
	id, err := r.preflight(ctx, member)
	if err != nil {
		return err
	}
	traces, err := r.traces(ctx, member)
	if err != nil {
		return err
	}
	found, err := r.discover(ctx)
	if err != nil {
		return err
	}
	if err := r.refuseItself(ctx, member); err != nil {
		return err
	}
	if err := r.mayRegister(ctx, found); err != nil {
		return err
	}
	if r.DryRun {
		return r.installAgent(ctx, member, nil)
	}
	identity := &identity{register: r, id: id}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.undo(ctx, identity, member, traces))
		}
	}()
	if err := identity.obtain(ctx, found); err != nil {
		return err
	}
	kubeconfig, err := r.kubeconfig(found, identity.certificate, identity.key)
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

// awaitCluster waits until the agent has made the Cluster. A Pod that is available
// says that its program runs, not that it has reached the control plane.
func (r Register) awaitCluster(ctx context.Context, karmada *side.Side) error {
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := karmada.Get(ctx, cluster)
		// One failed look says nothing about the Cluster.
		return have != nil, onlyRefused(err)
	})
	switch {
	case ctx.Err() != nil:
		return karmada.Explain("waiting for", cluster, context.Cause(ctx))
	case wait.Interrupted(err):
		return fmt.Errorf("the agent of member %q runs, but has made no Cluster within %s: its log says why; from the member it must reach %s, and its image %s must be karmada-agent",
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

// Validate says what is wrong with what was asked for, before anything is read.
func (r Register) Validate() error { return r.withDefaults().validate() }

func (r Register) validate() error {
	if err := registration.ValidateName(r.Name); err != nil {
		return err
	}
	if !agent.ValidName(r.Name) {
		return fmt.Errorf("cluster name %q: no cluster with an agent can have this name; choose another one", r.Name)
	}
	if err := validateEndpoint(r.Endpoint); err != nil {
		return err
	}
	if _, err := bootstraptoken.Parse(r.Token); err != nil {
		return fmt.Errorf("the token: %w", err)
	}
	if _, err := r.pins(); err != nil {
		return err
	}
	if len(r.CAHashes) == 0 && !r.SkipCAVerification {
		return errors.New("the hash of the control plane's certificate authority is missing: karmadactl token create --print-register-command tells it")
	}
	switch {
	case r.Timeout <= 0:
		return fmt.Errorf("a wait of %s is too short", r.Timeout)
	case r.Replicas < 0:
		return fmt.Errorf("there cannot be %d replicas of the agent", r.Replicas)
	case r.CertExpiration < minExpiration:
		return fmt.Errorf("a certificate must be asked for at least %s, not %s", minExpiration, r.CertExpiration)
	}
	return nil
}

// minExpiration is the shortest life of a certificate that can be asked for.
const minExpiration = 10 * time.Minute

// validateEndpoint checks that the endpoint is host:port.
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

func (r Register) pins() ([]bootstraptoken.Pin, error) {
	var pins []bootstraptoken.Pin
	for _, hash := range r.CAHashes {
		pin, err := bootstraptoken.ParsePin(hash)
		if err != nil {
			return nil, fmt.Errorf("the hash of the certificate authority: %w", err)
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// undo takes back what was created, the agent first so that nobody uses what goes; what
// the agent made itself last, when it has no rights left to make it again.
func (r Register) undo(ctx context.Context, identity *identity, member *side.Side, traces []client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), side.UndoTimeout)
	defer cancel()
	sweep := func(ctx context.Context) error { return r.sweep(ctx, member, traces) }
	giveBack := func(ctx context.Context) error { return r.giveBackBinding(ctx, member) }
	var errs []error
	for _, undo := range []func(context.Context) error{member.Undo, giveBack, identity.giveUp, sweep} {
		if err := undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cleaning up: %w", err))
		}
	}
	return errors.Join(errs...)
}

// traces are what the agent makes in the member when it starts, as far as it is not
// there yet: accounts with which everything may be done.
func (r Register) traces(ctx context.Context, member *side.Side) (absent []client.Object, err error) {
	pushed, shared := grant.Leftovers{Cluster: r.Name, Namespace: r.ClusterNamespace}, registration.Account(r.ClusterNamespace, grant.Impersonator)
	for _, object := range append(pushed.Objects(), grant.TokenRequest(shared), shared, registration.Namespace(r.ClusterNamespace)) {
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

// sweep deletes the traces of the agent.
func (r Register) sweep(ctx context.Context, member *side.Side, traces []client.Object) error {
	var errs []error
	for _, object := range traces {
		have, err := member.Get(ctx, object)
		if err == nil && have != nil {
			err = member.DeleteUnused(ctx, have)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// preflight says what the member holds already that the agent would need, and
// returns the identity of the member.
func (r Register) preflight(ctx context.Context, member *side.Side) (id string, err error) {
	r.logf("[preflight] Running pre-flight checks")
	if id, err = member.Identify(ctx, r.MemberOrigin); err != nil {
		return "", err
	}
	if err := r.checkMemberRole(ctx, member); err != nil {
		return "", err
	}
	var findings []error
	for _, object := range []client.Object{r.credentials(nil), r.serviceAccount(), r.deployment()} {
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

// refuseItself refuses a member that is the control plane. Whoever joins reads the
// identity of both; here the token tells, with whose secret nobody else signs. Not
// being allowed to look is no obstacle: this is to catch a mix-up.
func (r Register) refuseItself(ctx context.Context, member *side.Side) error {
	token, err := bootstraptoken.Parse(r.Token)
	if err != nil {
		return err
	}
	have, err := member.Get(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}})
	info, ok := have.(*corev1.ConfigMap)
	if err != nil || !ok {
		return nil //nolint:nilerr // see above
	}
	if _, err := verify(info, token); err != nil {
		return nil //nolint:nilerr // signed by nobody or by somebody else
	}
	return fmt.Errorf("the kubeconfig of %s leads to the control plane itself (%s): choose the context of the member with --context", member.Name, member.Host)
}

// PreflightError lists what stands in the way of a registration.
type PreflightError struct {
	Findings []error
	// Member is the name of the cluster that was to be registered.
	Member string
}

func (e *PreflightError) Error() string {
	text := "[preflight] some fatal errors occurred:"
	for _, finding := range e.Findings {
		text += "\n\t[ERROR]: " + finding.Error()
	}
	return text + "\nAn agent is or was installed here, and nothing was changed: unregister it first, or delete what is left of it"
}

func (r Register) logf(format string, args ...any) { registration.Log(r.Log).Printf(format, args...) }
