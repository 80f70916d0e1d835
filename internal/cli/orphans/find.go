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

	"karmada.io/karmada/internal/access/marked"
	"karmada.io/karmada/internal/cli/place"
	"karmada.io/karmada/internal/domain/work"
)

// orphan is an object in a member that belongs to no Work.
type orphan struct {
	resource schema.GroupVersionResource
	// object has metadata and kind only.
	object *unstructured.Unstructured
	// claim is the Work that wants the same object, if there is one.
	claim  work.Claim
	wanted bool
	// result says what became of it.
	result string
}

// answer is what is known of one cluster.
type answer struct {
	cluster string
	orphans []orphan
	// awaited is how many objects have no Work and are expected by a binding.
	awaited int
	// more is how many orphans are beyond the limit.
	more   int
	member dynamic.Interface
	// unsettled says why the cluster may lack Works; nil if it has all.
	unsettled error
}

// find returns the orphans in a member. The error names what could not be read.
func (o *options) find(ctx context.Context, where place.Place) (answer, error) {
	found := answer{cluster: where.Cluster}
	factory := o.Factory(&where, o.patience.RequestLimit())
	if err := place.Reach(ctx, factory, where); err != nil {
		return found, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return found, err
	}
	if found.member, err = dynamic.NewForConfig(config); err != nil {
		return found, fmt.Errorf("making a client: %w", err)
	}
	listing, unread := marked.List(ctx, config)
	if unread != nil {
		unread = fmt.Errorf("unknown, because %w", unread)
	}
	if len(listing.Objects) == 0 {
		return found, unread
	}
	karmada, err := o.karmada()
	if err != nil {
		return found, errors.Join(err, unread)
	}
	// Works are read after the objects: an object that was made meanwhile has its Work.
	claims, err := karmada.claims(ctx, where.Cluster)
	if err != nil {
		return found, errors.Join(err, unread)
	}
	// The namespace is read after the Works: if it is old now, it held them.
	found.unsettled = karmada.checkSettled(ctx, where.Cluster)
	for _, each := range listing.Objects {
		belongs, claim := claims.Of(each.Unstructured)
		if belongs != work.Orphan && belongs != work.Wanted {
			continue
		}
		found.orphans = append(found.orphans, orphan{resource: each.Resource, object: each.Unstructured, claim: claim, wanted: belongs == work.Wanted})
	}
	return found, unread
}

// dropAwaited removes the objects that a binding expects in their cluster: Works of them
// follow. Bindings are read after all Works: a Work that was made meanwhile has its binding.
func (o *options) dropAwaited(ctx context.Context, answers []answer) error {
	var unsure []string
	for i := range answers {
		if slices.ContainsFunc(answers[i].orphans, func(one orphan) bool { return !one.wanted }) {
			unsure = append(unsure, answers[i].cluster)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	karmada, err := o.karmada()
	if err != nil {
		return err
	}
	awaited, err := karmada.awaited(ctx, unsure)
	if err != nil {
		return err
	}
	for i := range answers {
		a := &answers[i]
		before := len(a.orphans)
		a.orphans = slices.DeleteFunc(a.orphans, func(one orphan) bool { return !one.wanted && awaited.Has(a.cluster, one.object) })
		a.awaited = before - len(a.orphans)
	}
	return nil
}

// sortAndLimit orders the orphans and keeps as many as the user wants.
func (a *answer) sortAndLimit(limit int) {
	slices.SortFunc(a.orphans, compare)
	if len(a.orphans) > limit {
		a.more = len(a.orphans) - limit
		a.orphans = a.orphans[:limit]
	}
}

func compare(a, b orphan) int {
	return cmp.Or(
		cmp.Compare(a.object.GetKind(), b.object.GetKind()), cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
		cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.resource.Group, b.resource.Group))
}
