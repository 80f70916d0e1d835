package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/marked"
	"karmada.io/karmada/internal/cli/place"
	"karmada.io/karmada/internal/domain/work"
)

// pageSize is how many Works one request returns.
const pageSize = 500

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
	// more is how many orphans are beyond the limit.
	more   int
	member dynamic.Interface
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
	// Works are read after the objects: an object that was made meanwhile has its Work.
	claims, err := o.claims(ctx, where.Cluster)
	if err != nil {
		return found, errors.Join(err, unread)
	}
	for _, each := range listing.Objects {
		belongs, claim := claims.Of(each.Unstructured)
		if belongs != work.Orphan && belongs != work.Wanted {
			continue
		}
		found.orphans = append(found.orphans, orphan{resource: each.Resource, object: each.Unstructured, claim: claim, wanted: belongs == work.Wanted})
	}
	slices.SortFunc(found.orphans, compare)
	if len(found.orphans) > o.limit {
		found.more = len(found.orphans) - o.limit
		found.orphans = found.orphans[:o.limit]
	}
	return found, unread
}

func compare(a, b orphan) int {
	return cmp.Or(
		cmp.Compare(a.object.GetKind(), b.object.GetKind()), cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
		cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.resource.Group, b.resource.Group))
}

// claims reads the Works of a cluster.
func (o *options) claims(ctx context.Context, cluster string) (work.Claims, error) {
	config, err := o.Program.Karmada(o.Context).Config()
	if err != nil {
		return work.Claims{}, err
	}
	karmada, err := dynamic.NewForConfig(config)
	if err != nil {
		return work.Claims{}, fmt.Errorf("making a client: %w", err)
	}
	space := work.ExecutionNamespace(cluster)
	stored := karmada.Resource(workv1alpha1.GroupVersion.WithResource("works")).Namespace(space)
	var works []workv1alpha1.Work
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := stored.List(ctx, page)
		if err != nil {
			return work.Claims{}, fmt.Errorf("listing the Works in namespace %s of the control plane: %w", space, err)
		}
		for i := range list.Items {
			one := workv1alpha1.Work{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &one); err != nil {
				return work.Claims{}, fmt.Errorf("reading Work %s/%s: %w", space, list.Items[i].GetName(), err)
			}
			works = append(works, one)
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return work.NewClaims(cluster, works)
		}
	}
}
