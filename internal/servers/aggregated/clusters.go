package aggregated

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// duplicateCheckTimeout is the timeout of the duplicate check after a creation. The check does not
// use the context of the request, because this context may already have ended.
const duplicateCheckTimeout = 10 * time.Second

// clusterStorage serves the resource clusters. It rejects duplicate IDs where uniqueIDs cannot: in
// dry runs, which do not reach etcd, and if another replica of the server writes the same ID at the
// same time.
type clusterStorage struct {
	*genericregistry.Store
}

// newClusterStorage returns the storage of the resource clusters. The store must be completed.
func newClusterStorage(store *genericregistry.Store) *clusterStorage {
	c := &clusterStorage{Store: store}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, c.rejectDryRunDuplicate(ctx, obj, nil, options.DryRun)
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, c.rejectDryRunDuplicate(ctx, obj, old, options.DryRun)
	}
	return c
}

// rejectDryRunDuplicate returns an error if the request is a dry run and another Cluster has the same
// ID. If the request is not a dry run, uniqueIDs returns this error.
func (c *clusterStorage) rejectDryRunDuplicate(ctx context.Context, obj, old runtime.Object, dryRun []string) error {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || !dryrun.IsDryRun(dryRun) || cluster.Spec.ID == "" || cluster.Spec.ID == clusterID(old) {
		return nil
	}
	var stored clusterv1alpha1.ClusterList
	if err := c.Storage.GetList(ctx, c.KeyRootFunc(ctx), listAllOptions(), &stored); err != nil {
		return fmt.Errorf("listing clusters with ID %q: %w", cluster.Spec.ID, err)
	}
	return validateUniqueID(cluster, stored.Items)
}

// Create stores a Cluster unless another Cluster has the same ID.
func (c *clusterStorage) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := c.Store.Create(ctx, obj, validate, options)
	if err != nil || dryrun.IsDryRun(options.DryRun) {
		return created, err
	}
	return created, c.revertDuplicate(ctx, created)
}

// Update changes a Cluster. Server-side apply may also create it.
func (c *clusterStorage) Update(
	ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	stored, created, err := c.Store.Update(ctx, name, object, create, update, forceAllowCreate, options)
	if err != nil || !created || dryrun.IsDryRun(options.DryRun) {
		return stored, created, err
	}
	return stored, created, c.revertDuplicate(ctx, stored)
}

// Delete deletes a Cluster. An agent may delete its own Cluster, but must not orphan the dependents,
// because they include the agent's RBAC roles: with these roles, the agent could register again
// without approval.
func (c *clusterStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if agent.IsAgent(requestUser(ctx)) && orphansDependents(options) {
		return nil, false, apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), name, errOrphans)
	}
	validateAll := func(ctx context.Context, object runtime.Object) error {
		if err := agent.ValidateRequest(requestUser(ctx), object.(*clusterv1alpha1.Cluster), receivedAt(ctx)); err != nil {
			return apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), name, err)
		}
		return validate(ctx, object)
	}
	return c.Store.Delete(ctx, name, validateAll, options)
}

var errOrphans = errors.New("an agent must not orphan the dependents of its Cluster: delete it without propagationPolicy Orphan")

func orphansDependents(options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // clients may still use the deprecated field
}

// revertDuplicate deletes the created Cluster if another replica of the server stored the same ID at
// the same time. Because each replica checks after its own write, at most one of the Clusters remains.
// If none remains, the client can retry. If the check itself fails, the Cluster is kept.
func (c *clusterStorage) revertDuplicate(ctx context.Context, obj runtime.Object) error {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || cluster.Spec.ID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), duplicateCheckTimeout)
	defer cancel()
	var stored clusterv1alpha1.ClusterList
	if err := c.Storage.GetList(ctx, c.KeyRootFunc(ctx), listAllOptions(), &stored); err != nil {
		klog.FromContext(ctx).Error(err, "Checking for clusters registered concurrently", "cluster", cluster.Name, "id", cluster.Spec.ID)
		return nil
	}
	duplicateErr := validateUniqueID(cluster, stored.Items)
	if duplicateErr == nil {
		return nil
	}
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(cluster.UID))}
	if _, _, err := c.Store.Delete(ctx, cluster.Name, rest.ValidateAllObjectFunc, options); err != nil {
		return fmt.Errorf("deleting cluster %q, whose ID %s was registered concurrently: %w", cluster.Name, cluster.Spec.ID, err)
	}
	return duplicateErr
}
