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
	// awaitLimit is how long a program waits for a control plane that is started or
	// installed at the same time.
	awaitLimit = time.Minute
	awaitPause = time.Second
	// askLimit is how long one request may take meanwhile.
	askLimit = 10 * time.Second
)

// errRefused tells that waiting is no use.
var errRefused = errors.New("the API server does not accept the credentials of the kubeconfig")

// foundation is what must be there before anything can run: otherwise every watch
// fails for itself, again and again.
type foundation struct {
	karmada kubernetes.Interface
	server  string
	// kinds are needed, by the version that is used of their group.
	kinds map[schema.GroupVersion][]string
	// namespace holds the Lease; empty if there is none.
	namespace string
}

// await waits until the API server answers and serves what the components need. It
// logs what it waits for, and returns it as the error when it has waited long
// enough.
func await(ctx context.Context, karmada *rest.Config, election flags.Election, components []Component) error {
	f, err := newFoundation(karmada, election, components)
	if err != nil {
		return err
	}
	return f.await(ctx, awaitLimit, awaitPause)
}

// Served returns what the control plane lacks that the components need, nothing
// if they can start. It asks once.
func Served(ctx context.Context, karmada *rest.Config, components ...Component) error {
	f, err := newFoundation(karmada, flags.Election{}, components)
	if err != nil {
		return err
	}
	return f.check(ctx)
}

func newFoundation(karmada *rest.Config, election flags.Election, components []Component) (*foundation, error) {
	asking := rest.CopyConfig(karmada)
	asking.Timeout = askLimit
	client, err := kubernetes.NewForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("making client of the control plane: %w", err)
	}
	kinds, err := kindsOf(components)
	if err != nil {
		return nil, err
	}
	f := &foundation{karmada: client, server: karmada.Host, kinds: kinds}
	if election.Enabled {
		f.namespace = election.Namespace
	}
	return f, nil
}

func kindsOf(components []Component) (map[schema.GroupVersion][]string, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	kinds := map[schema.GroupVersion][]string{}
	for _, component := range components {
		for _, object := range component.Needs {
			kind, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
			}
			kinds[kind.GroupVersion()] = append(kinds[kind.GroupVersion()], kind.Kind)
		}
	}
	return kinds, nil
}

func (f *foundation) await(ctx context.Context, limit, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var last error
	for {
		err := f.check(ctx)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}
		// At the end requests fail for no other reason than the end.
		if ctx.Err() == nil || last == nil {
			if last == nil || err.Error() != last.Error() {
				klog.FromContext(ctx).Info("Waiting for the control plane", "limit", limit, "reason", err.Error())
			}
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control plane is not ready after %s: %w", limit, last)
		case <-ticker.C:
		}
	}
}

// check returns what is missing.
func (f *foundation) check(ctx context.Context) error {
	if _, err := f.karmada.Discovery().ServerVersion(); err != nil {
		return f.unanswered(err)
	}
	var errs []error
	versions := slices.SortedFunc(maps.Keys(f.kinds), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	for _, version := range versions {
		errs = append(errs, f.served(version, f.kinds[version]))
	}
	errs = append(errs, f.space(ctx))
	return errors.Join(errs...)
}

func (f *foundation) unanswered(err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s: %w", errRefused, f.server, err)
	}
	return fmt.Errorf("the API server %s does not answer: %w; check that it runs and that the kubeconfig names it", f.server, err)
}

// served returns which of the kinds the API server does not serve, and the remedy.
func (f *foundation) served(version schema.GroupVersion, kinds []string) error {
	found, err := f.karmada.Discovery().ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking the API server %s for %s: %w", f.server, version, err)
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

// space returns an error if the namespace of the Lease is known to be missing.
// Whoever may not read it finds out in the election.
func (f *foundation) space(ctx context.Context) error {
	if f.namespace == "" {
		return nil
	}
	_, err := f.karmada.CoreV1().Namespaces().Get(ctx, f.namespace, metav1.GetOptions{})
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s of the Lease is missing: create it, or name another one by --leader-elect-resource-namespace", f.namespace)
	default:
		return fmt.Errorf("reading namespace %s of the Lease: %w", f.namespace, err)
	}
}
