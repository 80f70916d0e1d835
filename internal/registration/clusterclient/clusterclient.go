// Package clusterclient reads and writes objects in one of a registration's two clusters, the control plane
// or the member, and records which objects this run created.
//
// Invariants: an object that existed before this run is either reused or rejected, and a rollback does not
// delete it. An object that is still in use is not deleted, for example a namespace that contains other
// objects. Every request and every wait has a time limit.
package clusterclient

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
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop/patch"
	"karmada.io/karmada/internal/registration"
)

// maxCreateAttempts limits the attempts of Ensure, which retries if another client changed the object.
const maxCreateAttempts = 5

const (
	// RequestTimeout limits each request, including watches.
	RequestTimeout = 40 * time.Second

	// RollbackTimeout limits the cleanup after a failed run. The cleanup continues after the caller's context
	// has ended.
	RollbackTimeout = 30 * time.Second
)

// terminatingTimeout is how long AwaitTerminatingObject waits.
const terminatingTimeout = 30 * time.Second

// Client is a client for the control plane or the member. It records the objects that this run creates
// there.
type Client struct {
	// Name is the cluster's name in messages: "the control plane", or "member" and its name.
	Name string
	// Host is the cluster's address in messages.
	Host string
	API  client.WithWatch
	// Log receives progress messages for the user. It may be nil.
	Log registration.Log
	// DryRun makes Ensure and DeleteOwned only log their changes, and Release do nothing.
	DryRun bool
	// Owner is the ID of the control plane that owns the objects created in a member. It is empty in a client
	// for a control plane.
	Owner string
	// NamespacedKinds returns all namespaced kinds.
	NamespacedKinds func() ([]schema.GroupVersionKind, error)

	// created are the objects that this run created, in creation order.
	created []client.Object
	// adopted are the objects that existed before and to whose owners this run added the control plane.
	adopted []client.Object
}

// NewKarmada returns a client for the control plane.
func NewKarmada(config *rest.Config, log registration.Log) (*Client, error) {
	return newClient("the control plane", config, log)
}

// NewMember returns a client for the named member.
func NewMember(name string, config *rest.Config, log registration.Log) (*Client, error) {
	return newClient(fmt.Sprintf("member %q", name), config, log)
}

func newClient(name string, config *rest.Config, log registration.Log) (*Client, error) {
	if err := checkConfig(config, name); err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = RequestTimeout
	// Disable the client's rate limit. It would only delay requests, because every wait polls at an interval.
	config.QPS = -1
	config.WarningHandlerWithContext = warningLogger{clusterName: name, log: log}
	mapper := newMapper()
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s (%s): %w", name, config.Host, err)
	}
	kinds := func() ([]schema.GroupVersionKind, error) { return namespacedKinds(config, mapper) }
	return &Client{Name: name, Host: config.Host, API: api, Log: log, NamespacedKinds: kinds}, nil
}

// NewScheme returns a scheme that contains a registration's kinds.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, appsv1.AddToScheme,
		certificatesv1.AddToScheme,
		clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return scheme, nil
}

// newMapper returns a mapper that contains a registration's kinds, so that no discovery requests are needed.
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

// ID returns the cluster's ID: the UID of its namespace kube-system.
func (c *Client) ID(ctx context.Context) (string, error) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := c.API.Get(ctx, client.ObjectKeyFromObject(system), system); err != nil {
		return "", c.WrapError("reading the cluster ID from", system, err)
	}
	if !cluster.IsValidID(string(system.UID)) {
		return "", fmt.Errorf("%s: namespace %s has the UID %q, which is not a UID of Kubernetes; the server %s cannot be identified", c.Name,
			system.Name, system.UID, c.Host)
	}
	return string(system.UID), nil
}

// Identify returns the cluster's ID. Unless origin is empty, Identify also logs the ID and origin, which
// says where the client configuration comes from.
func (c *Client) Identify(ctx context.Context, origin string) (string, error) {
	id, err := c.ID(ctx)
	switch {
	case origin == "":
	case err != nil:
		c.Log.Printf("%s is %s: server %s", c.Name, origin, c.Host)
	default:
		c.Log.Printf("%s is %s: server %s, cluster ID %s", c.Name, origin, c.Host, id)
	}
	return id, err
}

// Ensure creates the object if it does not exist, and returns the stored object. If the object exists,
// Ensure calls adopt, which changes the stored object or returns an error to reject it. In a dry run, Ensure
// only logs what it would do.
func (c *Client) Ensure(ctx context.Context, want client.Object, adopt func(have client.Object) error) (client.Object, error) {
	for range maxCreateAttempts {
		have, err := c.Get(ctx, want)
		if err != nil {
			return nil, err
		}
		if isTerminatingNamespace(have) && !c.DryRun {
			if err := c.AwaitTerminatingObject(ctx, have); err != nil {
				return nil, err
			}
			continue
		}
		if have != nil {
			// Another client changed the object, for example another run of the same command. Read it again.
			if err = c.adoptExisting(ctx, have, adopt); apierrors.IsConflict(err) {
				continue
			}
			return have, err
		}
		if c.DryRun {
			c.Log.Printf("would create %s in %s", c.Describe(want), c.Name)
			return want, nil
		}
		// Create changes its argument, and the next attempt needs the original, so pass a copy.
		created := want.DeepCopyObject().(client.Object)
		err = c.API.Create(ctx, created)
		if err == nil {
			c.created = append(c.created, created)
			c.Log.Printf("created %s in %s", c.Describe(want), c.Name)
			return created, nil
		}
		// Another client may have created the object, such as a concurrent join.
		if !apierrors.IsAlreadyExists(err) {
			return nil, c.WrapError("creating", want, err)
		}
	}
	return nil, fmt.Errorf("%s in %s changes on every attempt: find out which other client creates, changes or deletes it", c.Describe(want),
		c.Name)
}

// isTerminatingNamespace reports whether object is a namespace that is being deleted. object may be nil.
func isTerminatingNamespace(object client.Object) bool {
	namespace, ok := object.(*corev1.Namespace)
	return ok && namespace.DeletionTimestamp != nil
}

// Get returns the stored object with the kind and name of like, or nil if it does not exist.
func (c *Client) Get(ctx context.Context, like client.Object) (client.Object, error) {
	kind, err := apiutil.GVKForObject(like, c.API.Scheme())
	if err != nil {
		return nil, err
	}
	empty, err := c.API.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	have, ok := empty.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object kind", kind)
	}
	err = c.API.Get(ctx, client.ObjectKeyFromObject(like), have)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.WrapError("reading", like, err)
	}
	return have, nil
}

// AwaitTerminatingObject waits until an object that is being deleted no longer exists, such as the execution
// namespace of a Cluster that was just deleted.
func (c *Client) AwaitTerminatingObject(ctx context.Context, object client.Object) error {
	c.Log.Printf("waiting until %s in %s, which is being deleted, is gone", c.Describe(object), c.Name)
	ctx, cancel := context.WithTimeout(ctx, terminatingTimeout)
	defer cancel()
	if err := c.AwaitGone(ctx, object); err != nil {
		return fmt.Errorf("%s in %s is being deleted and is not gone after %s: check what it still holds, and try again when it is gone (%w)",
			c.Describe(object), c.Name, terminatingTimeout, err)
	}
	return nil
}

// adoptExisting lets adopt change an existing object, and stores the change.
func (c *Client) adoptExisting(ctx context.Context, have client.Object, adopt func(client.Object) error) error {
	if !have.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("%s in %s is being deleted: wait until it is gone and try again", c.Describe(have), c.Name)
	}
	before := have.DeepCopyObject().(client.Object)
	if err := adopt(have); err != nil {
		return fmt.Errorf("%s in %s exists and cannot be reused: %w", c.Describe(have), c.Name, err)
	}
	if c.DryRun {
		c.Log.Printf("would reuse %s in %s", c.Describe(have), c.Name)
		return nil
	}
	changed, err := patch.Object(ctx, c.API, before, have)
	if err != nil {
		return c.WrapError("changing", have, err)
	}
	if changed {
		c.Log.Printf("changed %s in %s", c.Describe(have), c.Name)
	}
	return nil
}

// RollBack deletes the objects that this run created, in reverse order. It keeps a namespace that contains
// other objects, and objects that another control plane uses. It removes this control plane from the owners
// of objects that existed before.
func (c *Client) RollBack(ctx context.Context) error {
	var errs []error
	for _, object := range slices.Backward(c.created) {
		errs = append(errs, c.DeleteUnused(ctx, object))
	}
	for _, object := range slices.Backward(c.adopted) {
		errs = append(errs, c.Release(ctx, object))
	}
	c.created, c.adopted = nil, nil
	return errors.Join(errs...)
}

// DeleteUnused deletes the object unless it is a namespace that contains other objects or another control
// plane uses it.
func (c *Client) DeleteUnused(ctx context.Context, object client.Object) error {
	if ns, ok := object.(*corev1.Namespace); ok {
		if remaining, err := c.FindRemainingObject(ctx, ns.Name); err != nil || remaining != "" {
			return err
		}
	}
	if c.Owner != "" {
		return c.DeleteOwned(ctx, object)
	}
	// A conflict means that another client replaced the object after this run read it.
	if err := c.Delete(ctx, object); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// Describe returns an object's kind, namespace and name for messages, such as "Secret karmada-cluster/east".
func (c *Client) Describe(object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	if known, err := apiutil.GVKForObject(object, c.API.Scheme()); err == nil {
		kind = known.Kind
	}
	if object.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	}
	return fmt.Sprintf("%s %s", kind, object.GetName())
}

// warningLogger logs an API server's warnings.
type warningLogger struct {
	clusterName string
	log         registration.Log
}

func (w warningLogger) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	if ctx.Value(warningsDisabled{}) == nil {
		w.log.Printf("warning from %s: %s", w.clusterName, text)
	}
}

// warningsDisabled is the context key for requests whose warnings are not logged. The search for remaining
// objects uses it, because it lists all kinds, including deprecated ones.
type warningsDisabled struct{}

func checkConfig(config *rest.Config, name string) error {
	if config == nil {
		return errors.New("no kubeconfig was given for " + name)
	}
	return nil
}

// WrapError adds the failed action, the cluster, the object and, if there is any, advice to an error. The
// error can be unwrapped.
func (c *Client) WrapError(action string, object client.Object, err error) error {
	err = fmt.Errorf("%s %s in %s (%s): %w", action, c.Describe(object), c.Name, c.Host, err)
	if advice := registration.Advice(err, c.Name); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}
