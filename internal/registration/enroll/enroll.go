// Package enroll creates and removes the control plane's accounts and roles in a member, and creates and
// updates an agent's Cluster.
//
// The control plane gets two service accounts in each member: one for its own requests, and one that
// impersonates the cluster proxy's callers. The control plane stores the tokens of both accounts in Secrets
// that the Cluster owns.
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
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop/patch"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// Enrollment registers a cluster as a member in pull mode. The agent runs it at every start. It writes only
// what differs from the stored objects.
type Enrollment struct {
	// Name is the Cluster's name: a DNS label of at most 48 characters.
	Name string
	// ClusterNamespace is the namespace of the objects that are created in the control plane and in the
	// member. The default is karmada-cluster.
	ClusterNamespace string
	// Endpoint is the address at which the control plane reaches the member's API server, for example for the
	// cluster proxy. If it is empty, a stored address is kept, and a new Cluster gets the address in Member.
	Endpoint string
	// ProxyURL is the proxy between the control plane and the member. A proxy in Member takes precedence.
	ProxyURL string
	// Provider, Region and Zones locate the cluster, so that placements can select it. If a field is empty,
	// its stored value is kept.
	Provider, Region string
	Zones            []string
	// ReportedAccounts selects the accounts whose tokens are stored in the control plane.
	ReportedAccounts ReportedAccounts
	// Karmada and Member are the client configurations for the control plane and the cluster.
	Karmada, Member *rest.Config
	// Log receives progress messages for the user. It may be nil.
	Log func(format string, args ...any)
	// TokenTimeout limits the wait for the member to issue a token. The default is 30 s.
	TokenTimeout time.Duration
}

// Run registers the cluster and returns its Cluster, which contains the member's ID. If the Cluster is being
// deleted, Run returns it unchanged.
//
// Run creates the Cluster before it writes the Secrets. The creation reserves the name, so that a second
// agent with the same name cannot change the first agent's objects. Run returns a *RegisteredError if the
// cluster or the name is already registered. After a failure, Run does not delete the objects that it
// created, because the agent retries.
func (e Enrollment) Run(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
	e.ClusterNamespace = cmp.Or(e.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	e.TokenTimeout = cmp.Or(e.TokenTimeout, DefaultTokenTimeout)
	if err := registration.ValidateName(e.Name); err != nil {
		return nil, err
	}
	karmada, err := clusterclient.NewKarmada(e.Karmada, e.Log)
	if err != nil {
		return nil, err
	}
	member, err := clusterclient.NewMember(e.Name, e.Member, e.Log)
	if err != nil {
		return nil, err
	}
	id, err := member.ID(ctx)
	if err != nil {
		return nil, err
	}
	if err := member.ReadOwner(ctx, karmada); err != nil {
		return nil, err
	}
	stored, err := e.verifyRegistration(ctx, karmada, id)
	if err != nil || stored != nil && stored.DeletionTimestamp != nil {
		return stored, err
	}
	accounts := Grant{Cluster: e.Name, Namespace: e.ClusterNamespace, Member: member, Config: e.Member, Timeout: e.TokenTimeout}
	if err := accounts.VerifyOwner(ctx); err != nil {
		return nil, err
	}
	credentials, err := accounts.IssueTokens(ctx, e.ReportedAccounts)
	if err != nil {
		return nil, err
	}
	registered, err := e.createOrUpdate(ctx, karmada, stored, id)
	if err != nil {
		return nil, err
	}
	return registered, e.storeTokens(ctx, karmada, registered, credentials)
}

// verifyRegistration returns the stored Cluster, or nil if there is none. It returns an error if another
// cluster has the name, or if the flags are invalid.
func (e Enrollment) verifyRegistration(ctx context.Context, karmada *clusterclient.Client, id string) (*clusterv1alpha1.Cluster, error) {
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: e.Name}})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the cluster was removed from the control plane, or its agent has no permissions there yet: %s: %w",
			ReregistrationAdvice(e.Name), err)
	}
	if err != nil {
		return nil, err
	}
	if have == nil {
		return nil, e.dryRunCreate(ctx, karmada, id)
	}
	stored := have.(*clusterv1alpha1.Cluster)
	if taken := (&registration.RegisteredError{Name: e.Name, ID: id, Existing: *stored}); !taken.IsSameCluster() {
		return nil, taken
	}
	wanted := stored.DeepCopy()
	e.SetConnection(wanted, id)
	return stored, validate(wanted)
}

// dryRunCreate returns an error if the API server would reject the Cluster because its ID is registered
// under a name that the agent cannot read. It runs before accounts are created in the member. It ignores
// other errors, because the creation reports them.
func (e Enrollment) dryRunCreate(ctx context.Context, karmada *clusterclient.Client, id string) error {
	wanted := e.newCluster(id)
	if err := validate(wanted); err != nil {
		return err
	}
	if err := karmada.API.Create(ctx, wanted, client.DryRunAll); apierrors.IsInvalid(err) {
		return e.newInvalidError(err)
	}
	return nil
}

func (e Enrollment) newInvalidError(err error) error {
	return &InvalidError{fmt.Errorf("registering %q: %w", e.Name, err)}
}

// ReregistrationAdvice tells a user how to register a cluster again whose Cluster was deleted while its
// agent still runs.
func ReregistrationAdvice(name string) string {
	return fmt.Sprintf("to register it again, run in the cluster: karmadactl unregister %s --force, and then the command that 'karmadactl token create --print-register-command' prints for the control plane; to end the membership, run only the first command", name)
}

// createOrUpdate creates the Cluster from the agent's flags, or updates its connection fields.
func (e Enrollment) createOrUpdate(ctx context.Context, karmada *clusterclient.Client, stored *clusterv1alpha1.Cluster,
	id string) (*clusterv1alpha1.Cluster, error) {
	if stored == nil {
		return e.create(ctx, karmada, id)
	}
	if command := e.patchCommand(stored); command != "" {
		karmada.Log.Printf("the flags of the agent differ from the stored Cluster %q; the agent does not change these fields after the registration; to change them, run: %s", e.Name, command)
	}
	wanted := stored.DeepCopy()
	e.SetConnection(wanted, id)
	if equality.Semantic.DeepEqual(stored.Spec, wanted.Spec) {
		return stored, nil
	}
	_, err := patch.Object(ctx, karmada.API, stored, wanted)
	switch {
	case apierrors.IsForbidden(err):
		// Agents that other releases registered may create their Cluster but not patch it. They continue with
		// the stored fields.
		karmada.Log.Printf("warning: the agent may not change Cluster %q to match its flags: %v; let User system:karmada:agent:%s patch it, or change it as an administrator", e.Name, err, e.Name)
		return stored, nil
	case err != nil:
		return nil, karmada.WrapError("changing", stored, err)
	}
	karmada.Log.Printf("changed %s in %s", karmada.Describe(wanted), karmada.Name)
	return wanted, nil
}

func (e Enrollment) create(ctx context.Context, karmada *clusterclient.Client, id string) (*clusterv1alpha1.Cluster, error) {
	wanted := e.newCluster(id)
	err := karmada.API.Create(ctx, wanted)
	switch {
	case apierrors.IsAlreadyExists(err):
		// Another replica of the agent, or another cluster, has created the Cluster since it was read.
		return e.verifyRegistration(ctx, karmada, id)
	case apierrors.IsInvalid(err):
		return nil, e.newInvalidError(err)
	case err != nil:
		return nil, karmada.WrapError("creating", wanted, err)
	}
	karmada.Log.Printf("created %s in %s", karmada.Describe(wanted), karmada.Name)
	return wanted, nil
}

// newCluster returns the Cluster that the agent creates.
func (e Enrollment) newCluster(id string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	e.SetSpec(cluster, id)
	return cluster
}

// SetSpec sets a new Cluster's fields that the agent knows, and keeps the others.
func (e Enrollment) SetSpec(cluster *clusterv1alpha1.Cluster, id string) {
	e.SetConnection(cluster, id)
	spec := &cluster.Spec
	spec.Provider, spec.Region = cmp.Or(e.Provider, spec.Provider), cmp.Or(e.Region, spec.Region)
	if len(e.Zones) > 0 {
		spec.Zone, spec.Zones = "", slices.Clone(e.Zones)
	}
}

// SetConnection sets the fields that specify how the control plane reaches the cluster. An agent changes no
// other fields of a stored Cluster.
func (e Enrollment) SetConnection(cluster *clusterv1alpha1.Cluster, id string) {
	spec := &cluster.Spec
	spec.ID, spec.SyncMode = id, clusterv1alpha1.Pull
	spec.APIEndpoint = cmp.Or(e.Endpoint, spec.APIEndpoint, registration.Endpoint(e.Member))
	spec.ProxyURL = cmp.Or(registration.ProxyURL(e.Member), e.ProxyURL)
	spec.InsecureSkipTLSVerification = e.Member.Insecure
	reference := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: e.ClusterNamespace, Name: name}
	}
	if e.ReportedAccounts.Credentials {
		spec.SecretRef = reference(e.Name)
	}
	if e.ReportedAccounts.Impersonator {
		spec.ImpersonatorSecretRef = reference(e.Name + ImpersonatorSuffix)
	}
}

// storeTokens stores the reported accounts' tokens as Secrets in the control plane. The Cluster owns these
// Secrets.
func (e Enrollment) storeTokens(ctx context.Context, karmada *clusterclient.Client, registered *clusterv1alpha1.Cluster,
	credentials Credentials) error {
	credentialsSecret, impersonatorSecret := credentials.Secrets(e.Name, e.ClusterNamespace)
	var wanted []*corev1.Secret
	if e.ReportedAccounts.Impersonator {
		wanted = append(wanted, impersonatorSecret)
	}
	if e.ReportedAccounts.Credentials {
		wanted = append(wanted, credentialsSecret)
	}
	if len(wanted) == 0 {
		return nil
	}
	if _, err := karmada.Ensure(ctx, registration.NewNamespace(e.ClusterNamespace), func(client.Object) error { return nil }); err != nil {
		return err
	}
	for _, secret := range wanted {
		if err := EnsureSecret(ctx, karmada, secret, registered); err != nil {
			return err
		}
	}
	return nil
}

// InvalidError means that the agent's flags describe an invalid Cluster.
type InvalidError struct{ error }

func (i *InvalidError) Unwrap() error { return i.error }

// validate returns an InvalidError if the Cluster is invalid.
func validate(wanted *clusterv1alpha1.Cluster) error {
	if errs := domaincluster.Validate(wanted); len(errs) > 0 {
		return &InvalidError{fmt.Errorf("cluster %q would be invalid: %w", wanted.Name, errs.ToAggregate())}
	}
	return nil
}

// IsPermanentError reports whether a retry cannot succeed, because the name is taken or the Cluster is
// invalid.
func IsPermanentError(err error) bool {
	var taken *registration.RegisteredError
	var invalid *InvalidError
	return errors.As(err, &taken) || errors.As(err, &invalid)
}
