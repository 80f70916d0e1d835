package registry

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

// giveWayTimeout bounds the look that follows a creation, whose request may have ended.
const giveWayTimeout = 10 * time.Second

// Clusters is the main resource. It guards IDs where the storage cannot: in rehearsals,
// of which no storage gets to know, and against other replicas of the server.
type Clusters struct {
	*genericregistry.Store
}

// newClusters adds the guard to a store that is complete.
func newClusters(store *genericregistry.Store) *Clusters {
	c := &Clusters{Store: store}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, c.rehearse(ctx, obj, nil, options.DryRun)
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return func(context.Context, bool) {}, c.rehearse(ctx, obj, old, options.DryRun)
	}
	return c
}

// rehearse refuses in a dry run what would be refused without.
func (c *Clusters) rehearse(ctx context.Context, obj, old runtime.Object, dryRun []string) error {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || !dryrun.IsDryRun(dryRun) || cluster.Spec.ID == "" || cluster.Spec.ID == clusterID(old) {
		return nil
	}
	var stored clusterv1alpha1.ClusterList
	if err := c.Storage.GetList(ctx, c.KeyRootFunc(ctx), everything(), &stored); err != nil {
		return fmt.Errorf("looking for other clusters with ID %q: %w", cluster.Spec.ID, err)
	}
	return refuseTaken(cluster, stored.Items)
}

// Create stores a Cluster unless another one bears its ID.
func (c *Clusters) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := c.Store.Create(ctx, obj, validate, options)
	if err != nil || dryrun.IsDryRun(options.DryRun) {
		return created, err
	}
	return created, c.giveWay(ctx, created)
}

// Update changes a Cluster, or makes it where it is applied.
func (c *Clusters) Update(
	ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	stored, created, err := c.Store.Update(ctx, name, object, create, update, forceAllowCreate, options)
	if err != nil || !created || dryrun.IsDryRun(options.DryRun) {
		return stored, created, err
	}
	return stored, created, c.giveWay(ctx, stored)
}

// Delete deletes a Cluster. An agent may delete its own, with all rights that belong
// to it: one that left its rights behind could register again as it likes.
func (c *Clusters) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if agent.IsAgent(requester(ctx)) && orphans(options) {
		return nil, false, apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), name, errOrphans)
	}
	return c.Store.Delete(ctx, name, validate, options)
}

var errOrphans = errors.New("the agent of a cluster does not leave behind what belongs to its Cluster: delete it without propagationPolicy Orphan")

func orphans(options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // clients may still say it so
}

// giveWay takes a Cluster back that was created while another replica of the server
// took the same ID. All look after they have created, so at most one does not see
// another; if none stays, whoever tries again is alone. A look that fails proves
// nothing, and takes nothing back.
func (c *Clusters) giveWay(ctx context.Context, obj runtime.Object) error {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || cluster.Spec.ID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveWayTimeout)
	defer cancel()
	var stored clusterv1alpha1.ClusterList
	if err := c.Storage.GetList(ctx, c.KeyRootFunc(ctx), everything(), &stored); err != nil {
		klog.FromContext(ctx).Error(err, "Looking for clusters registered in the same instant", "cluster", cluster.Name, "id", cluster.Spec.ID)
		return nil
	}
	taken := refuseTaken(cluster, stored.Items)
	if taken == nil {
		return nil
	}
	only := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(cluster.UID))}
	if _, _, err := c.Delete(ctx, cluster.Name, rest.ValidateAllObjectFunc, only); err != nil {
		return fmt.Errorf("taking back cluster %q, whose ID %s was registered in the same instant: %w", cluster.Name, cluster.Spec.ID, err)
	}
	return taken
}
