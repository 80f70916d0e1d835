package programs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs/flags"
)

const (
	// awaitTimeout is how long a program waits for a control plane that is started or installed at
	// the same time as the program.
	awaitTimeout     = time.Minute
	awaitRetryPeriod = time.Second
	// requestTimeout limits a single request during the wait.
	requestTimeout = 10 * time.Second
)

// errUnauthorized ends the wait immediately when the API server rejects the credentials, because
// waiting longer does not help.
var errUnauthorized = errors.New("the API server does not accept the credentials of the kubeconfig")

// prerequisites are the kinds and the namespace that must exist before any component can run.
// Without them, every watch of every component would fail and retry.
type prerequisites struct {
	karmada kubernetes.Interface
	server  string
	// kinds are the required kinds by group version.
	kinds map[schema.GroupVersion][]string
	// leaseNamespace is the namespace of the Lease of the leader election. It is empty without
	// leader election.
	leaseNamespace string
}

// await waits until the API server responds and serves the kinds that the components need. It logs
// the missing prerequisites. After awaitTimeout it returns an error that names the missing
// prerequisites.
func await(ctx context.Context, karmada *rest.Config, election flags.Election, components []Component) error {
	f, err := newPrerequisites(karmada, election, components)
	if err != nil {
		return err
	}
	return f.await(ctx, awaitTimeout, awaitRetryPeriod)
}

// VerifyPrerequisites returns an error that names the prerequisites of the components that are
// missing in the control plane. It checks once and does not wait.
func VerifyPrerequisites(ctx context.Context, karmada *rest.Config, components ...Component) error {
	f, err := newPrerequisites(karmada, flags.Election{}, components)
	if err != nil {
		return err
	}
	return f.verify(ctx)
}

func newPrerequisites(karmada *rest.Config, election flags.Election, components []Component) (*prerequisites, error) {
	config := rest.CopyConfig(karmada)
	config.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client of the control plane: %w", err)
	}
	kinds, err := requiredKinds(components)
	if err != nil {
		return nil, err
	}
	f := &prerequisites{karmada: client, server: karmada.Host, kinds: kinds}
	if election.Enabled {
		f.leaseNamespace = election.Namespace
	}
	return f, nil
}

func requiredKinds(components []Component) (map[schema.GroupVersion][]string, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	kinds := map[schema.GroupVersion][]string{}
	for _, component := range components {
		for _, object := range component.allRequiredKinds() {
			kind, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
			}
			kinds[kind.GroupVersion()] = append(kinds[kind.GroupVersion()], kind.Kind)
		}
	}
	return kinds, nil
}

func (p *prerequisites) await(ctx context.Context, limit, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var lastErr error
	for {
		err := p.verify(ctx)
		if err == nil || errors.Is(err, errUnauthorized) {
			return err
		}
		// After the deadline, requests fail only because of the deadline, so keep the previous
		// error, which is more useful.
		if ctx.Err() == nil || lastErr == nil {
			if lastErr == nil || err.Error() != lastErr.Error() {
				klog.FromContext(ctx).Info("Waiting for the control plane", "limit", limit, "reason", err.Error())
			}
			lastErr = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control plane is not ready after %s: %w", limit, lastErr)
		case <-ticker.C:
		}
	}
}

// verify returns an error that names every missing prerequisite.
func (p *prerequisites) verify(ctx context.Context) error {
	if _, err := p.karmada.Discovery().ServerVersion(); err != nil {
		return p.connectionError(err)
	}
	var errs []error
	versions := slices.SortedFunc(maps.Keys(p.kinds), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	for _, version := range versions {
		errs = append(errs, p.verifyKinds(version, p.kinds[version]))
	}
	errs = append(errs, p.verifyLeaseNamespace(ctx))
	return errors.Join(errs...)
}

func (p *prerequisites) connectionError(err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s: %w", errUnauthorized, p.server, err)
	}
	return fmt.Errorf("the API server %s does not respond: %w; check that it runs and that the kubeconfig has its address", p.server, err)
}

// verifyKinds returns an error that names the remedy, and the kinds that the API server does not
// serve.
func (p *prerequisites) verifyKinds(version schema.GroupVersion, kinds []string) error {
	found, err := p.karmada.Discovery().ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discovering %s at the API server %s: %w", version, p.server, err)
	}
	if err != nil {
		found = &metav1.APIResourceList{}
	}
	var missing []string
	for _, kind := range kinds {
		if !slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind && !strings.Contains(r.Name, "/") }) {
			resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
			missing = append(missing, resource.GroupResource().String())
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	switch {
	case len(missing) == 0:
		return nil
	case version.Group == clusterv1alpha1.GroupName:
		return fmt.Errorf("%s is not served in %s: karmada-aggregated-apiserver does that; start it and check the APIService %s.%s",
			strings.Join(missing, ", "), version, version.Version, version.Group)
	default:
		return fmt.Errorf("%s: not served in %s; install the CustomResourceDefinitions of this release of Karmada",
			strings.Join(missing, ", "), version)
	}
}

// verifyLeaseNamespace returns an error if the namespace of the Lease does not exist. If the
// process is not allowed to read namespaces, it returns nil, because the leader election reports a
// missing namespace later.
func (p *prerequisites) verifyLeaseNamespace(ctx context.Context) error {
	if p.leaseNamespace == "" {
		return nil
	}
	_, err := p.karmada.CoreV1().Namespaces().Get(ctx, p.leaseNamespace, metav1.GetOptions{})
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s of the Lease is missing: create it, or name another one by --leader-elect-resource-namespace",
			p.leaseNamespace)
	default:
		return fmt.Errorf("reading namespace %s of the Lease: %w", p.leaseNamespace, err)
	}
}
