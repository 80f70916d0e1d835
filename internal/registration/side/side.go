// Package side answers "what does one of the two clusters hold that a registration
// touches, and what of that was made by this run?".
//
// Invariants: what was there before is reused or refused, and stays when the run is
// undone. What others use is not deleted. Every request and every wait ends.
package side

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
)

// createAttempts is how often somebody else may be faster.
const createAttempts = 5

const (
	// RequestTimeout bounds every single request, watches included.
	RequestTimeout = 40 * time.Second

	// UndoTimeout bounds the clean-up after a run that did not end well. It goes on
	// when the caller has given up.
	UndoTimeout = 30 * time.Second
)

// outliveTimeout is how long something that is being deleted is waited for.
const outliveTimeout = 30 * time.Second

// Side is one of the two clusters that a registration touches, and what this run
// has created there.
type Side struct {
	// Name is what messages call it: the control plane, or a member by name.
	Name string
	// Host is its address, for messages.
	Host string
	// API leads to it.
	API client.WithWatch
	// Log receives what happens, for people. Nil means nobody listens.
	Log registration.Log
	// DryRun makes Ensure tell what it would do, and do nothing.
	DryRun bool
	// Kinds are those of which a namespace may hold objects.
	Kinds func() ([]schema.GroupVersionKind, error)

	made []client.Object
}

// Karmada is the side of the control plane.
func Karmada(config *rest.Config, log registration.Log) (*Side, error) {
	return newSide("the control plane", config, log)
}

// Member is the side of a member, by its name.
func Member(name string, config *rest.Config, log registration.Log) (*Side, error) {
	return newSide(fmt.Sprintf("member %q", name), config, log)
}

func newSide(name string, config *rest.Config, log registration.Log) (*Side, error) {
	if err := checkConfig(config, name); err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = RequestTimeout
	config.WarningHandlerWithContext = warnings{side: name, log: log}
	mapper := newMapper()
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s (%s): %w", name, config.Host, err)
	}
	kinds := func() ([]schema.GroupVersionKind, error) { return namespacedKinds(config, mapper) }
	return &Side{Name: name, Host: config.Host, API: api, Log: log, Kinds: kinds}, nil
}

// NewScheme knows the kinds that are touched.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, appsv1.AddToScheme, certificatesv1.AddToScheme,
		clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return scheme, nil
}

// newMapper knows the few kinds that are touched, which saves asking each side
// for all it serves and lets the first request be one that matters.
func newMapper() *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.Add(workv1alpha1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace)
	mapper.Add(workv1alpha2.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
	mapper.Add(workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
	return mapper
}

// ID is the identity of the cluster: the UID of its kube-system namespace.
func (s *Side) ID(ctx context.Context) (string, error) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := s.API.Get(ctx, client.ObjectKeyFromObject(system), system); err != nil {
		return "", s.Explain("reading the cluster ID from", system, err)
	}
	if !cluster.IsID(string(system.UID)) {
		return "", fmt.Errorf("%s: namespace %s has the UID %q, which is none of Kubernetes; the server %s cannot be identified", s.Name, system.Name, system.UID, s.Host)
	}
	return string(system.UID), nil
}

// Identify returns the identity of the cluster and logs which cluster it is. The
// origin says where the way into it was read from; an empty one is not logged.
func (s *Side) Identify(ctx context.Context, origin string) (string, error) {
	id, err := s.ID(ctx)
	switch {
	case origin == "":
	case err != nil:
		s.Log.Printf("%s is %s: server %s", s.Name, origin, s.Host)
	default:
		s.Log.Printf("%s is %s: server %s, cluster ID %s", s.Name, origin, s.Host, id)
	}
	return id, err
}

// Ensure makes an object exist and returns it as it is stored. One that is there
// already is reused: adopt changes it where it does not fit, or refuses it. With
// DryRun it only tells what it would do.
func (s *Side) Ensure(ctx context.Context, want client.Object, adopt func(have client.Object) error) (client.Object, error) {
	for range createAttempts {
		have, err := s.Get(ctx, want)
		if err != nil {
			return nil, err
		}
		if have != nil {
			if _, is := have.(*corev1.Namespace); is && !have.GetDeletionTimestamp().IsZero() && !s.DryRun {
				if err := s.Outlive(ctx, have); err != nil {
					return nil, err
				}
				continue
			}
			// Who else changes it may be a run like this one: look again.
			if err = s.reuse(ctx, have, adopt); apierrors.IsConflict(err) {
				continue
			}
			return have, err
		}
		if s.DryRun {
			s.Log.Printf("would create %s in %s", s.Describe(want), s.Name)
			return want, nil
		}
		// The server fills in what it is given, and a second try needs it clean.
		created := want.DeepCopyObject().(client.Object)
		err = s.API.Create(ctx, created)
		if err == nil {
			s.made = append(s.made, created)
			s.Log.Printf("created %s in %s", s.Describe(want), s.Name)
			return created, nil
		}
		// Somebody was faster, such as another join at the same time.
		if !apierrors.IsAlreadyExists(err) {
			return nil, s.Explain("creating", want, err)
		}
	}
	return nil, fmt.Errorf("%s in %s changes all the time: see who else creates, changes and deletes it", s.Describe(want), s.Name)
}

// Get returns the stored object of the same kind and name, nil if there is none.
func (s *Side) Get(ctx context.Context, like client.Object) (client.Object, error) {
	kind, err := apiutil.GVKForObject(like, s.API.Scheme())
	if err != nil {
		return nil, err
	}
	empty, err := s.API.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	have, ok := empty.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of object", kind)
	}
	err = s.API.Get(ctx, client.ObjectKeyFromObject(like), have)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Explain("reading", like, err)
	}
	return have, nil
}

// Outlive waits until an object that is being deleted is gone, such as a namespace
// that a cluster had which has just left.
func (s *Side) Outlive(ctx context.Context, object client.Object) error {
	s.Log.Printf("waiting until %s in %s is gone, which is being deleted", s.Describe(object), s.Name)
	ctx, cancel := context.WithTimeout(ctx, outliveTimeout)
	defer cancel()
	if err := s.AwaitGone(ctx, object); err != nil {
		return fmt.Errorf("%s in %s is being deleted and not gone after %s: see what it still holds, and try again when it is gone (%w)",
			s.Describe(object), s.Name, outliveTimeout, err)
	}
	return nil
}

func (s *Side) reuse(ctx context.Context, have client.Object, adopt func(client.Object) error) error {
	if !have.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("%s in %s is being deleted: wait until it is gone and try again", s.Describe(have), s.Name)
	}
	before := have.DeepCopyObject().(client.Object)
	if err := adopt(have); err != nil {
		return fmt.Errorf("%s in %s exists and cannot be reused: %w", s.Describe(have), s.Name, err)
	}
	if s.DryRun {
		s.Log.Printf("would reuse %s in %s", s.Describe(have), s.Name)
		return nil
	}
	changed, err := patch.Object(ctx, s.API, before, have)
	if err != nil {
		return s.Explain("changing", have, err)
	}
	if changed {
		s.Log.Printf("changed %s in %s", s.Describe(have), s.Name)
	}
	return nil
}

// Undo deletes what this run has created, the latest first. A namespace that
// others use by now stays.
func (s *Side) Undo(ctx context.Context) error {
	var errs []error
	for _, object := range slices.Backward(s.made) {
		errs = append(errs, s.DeleteUnused(ctx, object))
	}
	s.made = nil
	return errors.Join(errs...)
}

// DeleteUnused deletes an object, unless it is a namespace that others use.
func (s *Side) DeleteUnused(ctx context.Context, object client.Object) error {
	if ns, ok := object.(*corev1.Namespace); ok {
		if occupied, err := s.Occupant(ctx, ns.Name); err != nil || occupied != "" {
			return err
		}
	}
	// One that was replaced meanwhile gives a conflict and is not ours.
	if err := s.Delete(ctx, object); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// Describe names an object as people do: Secret karmada-cluster/east.
func (s *Side) Describe(object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	if known, err := apiutil.GVKForObject(object, s.API.Scheme()); err == nil {
		kind = known.Kind
	}
	if object.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	}
	return fmt.Sprintf("%s %s", kind, object.GetName())
}

// warnings passes on what an API server warns of.
type warnings struct {
	side string
	log  registration.Log
}

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	if ctx.Value(unasked{}) == nil {
		w.log.Printf("warning from %s: %s", w.side, text)
	}
}

// unasked marks requests that the user does not know of: that a kind is deprecated
// is nothing to tell whom who only wants to know whether there are any.
type unasked struct{}

func checkConfig(config *rest.Config, side string) error {
	if config == nil {
		return errors.New("no way to reach " + side + " was given")
	}
	return nil
}

// Explain says what could not be done, on which side and to which object, and
// what helps against it. The cause stays in the chain.
func (s *Side) Explain(doing string, object client.Object, err error) error {
	err = fmt.Errorf("%s %s in %s (%s): %w", doing, s.Describe(object), s.Name, s.Host, err)
	if advice := registration.Advice(err, s.Name); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}
