package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"karmada.io/karmada/internal/access/managedobjects"
	"karmada.io/karmada/internal/cli/targetcluster"
	"karmada.io/karmada/internal/domain/work"
)

// orphan is an object in a member that has the labels of Karmada, but was created for a Work that
// does not exist.
type orphan struct {
	resource schema.GroupVersionResource
	// object contains only the kind and the metadata.
	object *unstructured.Unstructured
	// claim is the Work that describes the object now. It is set if isWanted is true. Then the
	// Work can adopt the object.
	claim    work.WorkManifest
	isWanted bool
	// result is the result of the action.
	result string
}

// clusterOrphans are the orphans of one cluster.
type clusterOrphans struct {
	cluster string
	orphans []orphan
	// awaitedCount is the number of objects that have no Work, but that a binding expects.
	awaitedCount int
	// omittedCount is the number of orphans that exceed the limit.
	omittedCount int
	member       dynamic.Interface
	// unsettledErr is the reason why Works of the cluster may be missing. It is nil if no Work
	// can be missing.
	unsettledErr error
}

// findOrphans returns the orphans in a member. Its error names the kinds and objects that could
// not be read.
func (o *options) findOrphans(ctx context.Context, target targetcluster.Target) (clusterOrphans, error) {
	found := clusterOrphans{cluster: target.Cluster}
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if err := targetcluster.CheckReachable(ctx, factory, target); err != nil {
		return found, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return found, err
	}
	if found.member, err = dynamic.NewForConfig(config); err != nil {
		return found, fmt.Errorf("creating a client: %w", err)
	}
	listing, unread := managedobjects.List(ctx, config)
	if unread != nil {
		unread = fmt.Errorf("unknown, because %w", unread)
	}
	if len(listing.Objects) == 0 {
		return found, unread
	}
	karmada, err := o.newKarmadaReader()
	if err != nil {
		return found, errors.Join(err, unread)
	}
	// Read the Works after the objects, so that the list contains the Work of an object that was
	// created shortly before.
	claims, err := karmada.listClaims(ctx, target.Cluster)
	if err != nil {
		return found, errors.Join(err, unread)
	}
	// Read the namespace after the Works. If the namespace is old enough, it contained all Works.
	found.unsettledErr = karmada.checkSettled(ctx, target.Cluster)
	for _, each := range listing.Objects {
		belongs, claim := claims.OwnershipOf(each.Unstructured)
		if belongs != work.Orphaned && belongs != work.Adoptable {
			continue
		}
		found.orphans = append(found.orphans, orphan{resource: each.Resource, object: each.Unstructured, claim: claim, isWanted: belongs == work.Adoptable})
	}
	return found, unread
}

// dropAwaited removes objects that a binding expects in their cluster, because the Works of these
// objects will be created. Bindings are read after all Works, so that a Work that was created
// meanwhile has its binding.
func (o *options) dropAwaited(ctx context.Context, results []clusterOrphans) error {
	var unsure []string
	for i := range results {
		if slices.ContainsFunc(results[i].orphans, func(one orphan) bool { return !one.isWanted }) {
			unsure = append(unsure, results[i].cluster)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	karmada, err := o.newKarmadaReader()
	if err != nil {
		return err
	}
	awaited, err := karmada.listAwaited(ctx, unsure)
	if err != nil {
		return err
	}
	for i := range results {
		a := &results[i]
		before := len(a.orphans)
		a.orphans = slices.DeleteFunc(a.orphans, func(one orphan) bool { return !one.isWanted && awaited.Has(a.cluster, one.object) })
		a.awaitedCount = before - len(a.orphans)
	}
	return nil
}

// sortAndLimit sorts the orphans, and removes those that exceed the limit.
func (c *clusterOrphans) sortAndLimit(limit int) {
	slices.SortFunc(c.orphans, compareOrphans)
	if len(c.orphans) > limit {
		c.omittedCount = len(c.orphans) - limit
		c.orphans = c.orphans[:limit]
	}
}

func compareOrphans(a, b orphan) int {
	return cmp.Or(
		cmp.Compare(a.object.GetKind(), b.object.GetKind()), cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
		cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.resource.Group, b.resource.Group))
}
