// Package enroll answers "how does an agent make the Cluster that it serves?".
package enroll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// Agent registers a cluster as a member that its own agent looks after. It is run
// at every start of the agent, and writes what differs from what is stored.
type Agent struct {
	// Name is the name of the Cluster: a DNS label of at most 48 characters.
	Name string
	// ClusterNamespace is the namespace, on both sides, of what is created.
	// Default karmada-cluster.
	ClusterNamespace string
	// Endpoint is where the control plane finds the API server of the member, for
	// the features that go through the control plane. Empty leaves what is stored,
	// and is the address in Member at first.
	Endpoint string
	// ProxyURL is the proxy on the way from the control plane to the member. One
	// that Member names counts more.
	ProxyURL string
	// Provider, Region and Zones are where the cluster is; placements refer to
	// them. What is empty is left as it is stored.
	Provider, Region string
	Zones            []string
	// Report says which tokens of the member the control plane is told.
	Report grant.Reported
	// Karmada and Member lead to the control plane and to the cluster.
	Karmada, Member *rest.Config
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
	// TokenTimeout is how long the member may take to issue a token. Default 30 s.
	TokenTimeout time.Duration
}

// Run registers the cluster and returns its Cluster, with an ID that is that of
// the member. A Cluster that is being deleted is left alone and returned as it is.
//
// The Cluster is created before its Secrets are written: whoever creates it has
// the name, so that a second agent of the same name changes nothing of the first
// one. Run returns a *RegisteredError if the cluster or the name is taken. What
// was created stays when it fails, for it is tried again.
func (a Agent) Run(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	a.ClusterNamespace = cmp.Or(a.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	a.TokenTimeout = cmp.Or(a.TokenTimeout, grant.DefaultTokenTimeout)
	if err := registration.ValidateName(a.Name); err != nil {
		return nil, err
	}
	karmada, err := side.Karmada(a.Karmada, a.Log)
	if err != nil {
		return nil, err
	}
	member, err := side.Member(a.Name, a.Member, a.Log)
	if err != nil {
		return nil, err
	}
	id, err := member.ID(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := a.check(ctx, karmada, id)
	if err != nil || stored != nil && stored.DeletionTimestamp != nil {
		return stored, err
	}
	g := grant.Grant{Cluster: a.Name, Namespace: a.ClusterNamespace, Member: member, Config: a.Member, Timeout: a.TokenTimeout}
	credentials, err := g.Issue(ctx, a.Report)
	if err != nil {
		return nil, err
	}
	registered, err := a.enroll(ctx, karmada, stored, id)
	if err != nil {
		return nil, err
	}
	return registered, a.tell(ctx, karmada, registered, credentials)
}

// check returns the stored Cluster, nil if there is none, or why this is not the
// one.
func (a Agent) check(ctx context.Context, karmada *side.Side, id string) (*clusterv1alpha1.Cluster, error) {
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a.Name}})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the cluster was removed from the control plane, or its agent has not got its rights there: %s: %w", Again(a.Name), err)
	}
	if err != nil {
		return nil, err
	}
	if have == nil {
		return nil, a.rehearse(ctx, karmada, id)
	}
	stored := have.(*clusterv1alpha1.Cluster)
	if taken := (&registration.RegisteredError{Name: a.Name, ID: id, By: *stored}); !taken.Same() {
		return nil, taken
	}
	wanted := stored.DeepCopy()
	a.Reach(wanted, id)
	return stored, invalid(wanted)
}

// rehearse returns why no such Cluster can be created, before the member gets accounts
// for it: the cluster may be registered under a name that the agent cannot see. What
// else keeps it from being created is left to the creation.
func (a Agent) rehearse(ctx context.Context, karmada *side.Side, id string) error {
	wanted := a.described(id)
	if err := invalid(wanted); err != nil {
		return err
	}
	if err := karmada.API.Create(ctx, wanted, client.DryRunAll); apierrors.IsInvalid(err) {
		return a.refused(err)
	}
	return nil
}

func (a Agent) refused(err error) error {
	return &InvalidError{fmt.Errorf("registering %q: %w", a.Name, err)}
}

// Again says how a cluster is registered whose Cluster was removed while its agent
// runs on.
func Again(name string) string {
	return fmt.Sprintf("to register it again, where the cluster is: karmadactl unregister %s --force, then what 'karmadactl token create --print-register-command' prints where the control plane is administered; to leave it, the first alone", name)
}

// enroll creates the Cluster as the agent describes it, or changes how it is reached.
func (a Agent) enroll(ctx context.Context, karmada *side.Side, stored *clusterv1alpha1.Cluster, id string) (*clusterv1alpha1.Cluster, error) {
	if stored == nil {
		return a.create(ctx, karmada, id)
	}
	if command := a.difference(stored); command != "" {
		karmada.Log.Printf("the flags of the agent describe Cluster %q otherwise than it is stored; the agent does not change that after the registration, a person does: %s", a.Name, command)
	}
	wanted := stored.DeepCopy()
	a.Reach(wanted, id)
	if equality.Semantic.DeepEqual(stored.Spec, wanted.Spec) {
		return stored, nil
	}
	_, err := patch.Object(ctx, karmada.API, stored, wanted)
	switch {
	case apierrors.IsForbidden(err):
		// Agents that other releases registered may create their Cluster and not
		// change it. All that they do goes on with what is stored.
		karmada.Log.Printf("warning: the agent may not change Cluster %q to what its flags say: %v; let User system:karmada:agent:%s patch it, or change it as an administrator", a.Name, err, a.Name)
		return stored, nil
	case err != nil:
		return nil, karmada.Explain("changing", stored, err)
	}
	karmada.Log.Printf("changed %s in %s", karmada.Describe(wanted), karmada.Name)
	return wanted, nil
}

func (a Agent) create(ctx context.Context, karmada *side.Side, id string) (*clusterv1alpha1.Cluster, error) {
	wanted := a.described(id)
	err := karmada.API.Create(ctx, wanted)
	switch {
	case apierrors.IsAlreadyExists(err):
		// Another replica was faster, or another cluster.
		return a.check(ctx, karmada, id)
	case apierrors.IsInvalid(err):
		return nil, a.refused(err)
	case err != nil:
		return nil, karmada.Explain("creating", wanted, err)
	}
	karmada.Log.Printf("created %s in %s", karmada.Describe(wanted), karmada.Name)
	return wanted, nil
}

// described is the Cluster as the agent creates it.
func (a Agent) described(id string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
	a.Describe(cluster, id)
	return cluster
}

// Describe brings a Cluster that is created in line with what the agent knows, and
// leaves to others what it does not.
func (a Agent) Describe(cluster *clusterv1alpha1.Cluster, id string) {
	a.Reach(cluster, id)
	spec := &cluster.Spec
	spec.Provider, spec.Region = cmp.Or(a.Provider, spec.Provider), cmp.Or(a.Region, spec.Region)
	if len(a.Zones) > 0 {
		spec.Zone, spec.Zones = "", slices.Clone(a.Zones)
	}
}

// Reach brings a Cluster in line with how the agent knows that it is reached. An agent
// changes nothing else of a Cluster that is stored.
func (a Agent) Reach(cluster *clusterv1alpha1.Cluster, id string) {
	spec := &cluster.Spec
	spec.ID, spec.SyncMode = id, clusterv1alpha1.Pull
	spec.APIEndpoint = cmp.Or(a.Endpoint, spec.APIEndpoint, registration.Endpoint(a.Member))
	spec.ProxyURL = cmp.Or(registration.ProxyOf(a.Member), a.ProxyURL)
	spec.InsecureSkipTLSVerification = a.Member.Insecure
	reference := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: a.ClusterNamespace, Name: name}
	}
	if a.Report.Credentials {
		spec.SecretRef = reference(a.Name)
	}
	if a.Report.Impersonator {
		spec.ImpersonatorSecretRef = reference(a.Name + grant.ImpersonatorSuffix)
	}
}

// tell stores the reported tokens in the control plane, where they go with the
// Cluster.
func (a Agent) tell(ctx context.Context, karmada *side.Side, registered *clusterv1alpha1.Cluster, credentials grant.Access) error {
	acting, impersonating := credentials.Secrets(a.Name, a.ClusterNamespace)
	var wanted []*corev1.Secret
	if a.Report.Impersonator {
		wanted = append(wanted, impersonating)
	}
	if a.Report.Credentials {
		wanted = append(wanted, acting)
	}
	if len(wanted) == 0 {
		return nil
	}
	if _, err := karmada.Ensure(ctx, registration.Namespace(a.ClusterNamespace), func(client.Object) error { return nil }); err != nil {
		return err
	}
	for _, secret := range wanted {
		if err := grant.Keep(ctx, karmada, secret, registered); err != nil {
			return err
		}
	}
	return nil
}

// InvalidError tells that what the agent says of its cluster cannot be stored.
type InvalidError struct{ error }

func (e *InvalidError) Unwrap() error { return e.error }

func invalid(wanted *clusterv1alpha1.Cluster) error {
	if wrong := domaincluster.Validate(wanted); len(wrong) > 0 {
		return &InvalidError{fmt.Errorf("cluster %q would not be valid: %w", wanted.Name, wrong.ToAggregate())}
	}
	return nil
}

// Final tells that an error is none that passes: the name is taken, or what is
// said of the cluster is wrong.
func Final(err error) bool {
	var taken *registration.RegisteredError
	var wrong *InvalidError
	return errors.As(err, &taken) || errors.As(err, &wrong)
}
