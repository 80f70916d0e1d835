package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// orphan is an object in a member with the labels of Karmada whose Work does not exist.
type orphan struct {
	resource schema.GroupVersionResource
	// object contains only the kind and the metadata.
	object *unstructured.Unstructured
	// claim is another Work that contains the object and can adopt it. It is set only if isWanted is true.
	claim    work.WorkManifest
	isWanted bool
	// result is the result of the action.
	result string
}

// clusterOrphans are the orphans of one cluster.
type clusterOrphans struct {
	cluster string
	orphans []orphan
	// awaitedCount is the number of objects without a Work that a binding expects.
	awaitedCount int
	// omittedCount is the number of orphans that exceed the limit.
	omittedCount int
	member       dynamic.Interface
	// unsettledErr is the reason why Works of the cluster may be missing. It is nil if all Works are known.
	unsettledErr error
}

// findOrphans returns the orphans in the target member. The returned error names the kinds and objects that could not be
// read.
func (o *orphanOptions) findOrphans(ctx context.Context, target command.Target) (clusterOrphans, error) {
	found := clusterOrphans{cluster: target.Cluster}
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if err := command.VerifyReachable(ctx, factory, target); err != nil {
		return found, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return found, err
	}
	if found.member, err = dynamic.NewForConfig(config); err != nil {
		return found, fmt.Errorf("creating a client: %w", err)
	}
	listing, unread := member.ListManaged(ctx, config)
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
	found.unsettledErr = karmada.verifySettled(ctx, target.Cluster)
	for _, each := range listing.Objects {
		belongs, claim := claims.OwnershipOf(each.Unstructured)
		if belongs != work.Orphaned && belongs != work.Adoptable {
			continue
		}
		found.orphans = append(found.orphans, orphan{resource: each.Resource, object: each.Unstructured, claim: claim,
			isWanted: belongs == work.Adoptable})
	}
	return found, unread
}

// dropAwaited removes the objects that a binding expects in their cluster, because their Works will be created. It reads the
// bindings after all Works, because a binding exists before its Works.
func (o *orphanOptions) dropAwaited(ctx context.Context, results []clusterOrphans) error {
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

// karmadaReader reads Works, bindings and namespaces of the control plane.
type karmadaReader struct{ dynamic.Interface }

func (o *orphanOptions) newKarmadaReader() (karmadaReader, error) {
	config, err := o.Program.KarmadaKubeconfig(o.Context).Config()
	if err != nil {
		return karmadaReader{}, err
	}
	karmadaClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return karmadaReader{}, fmt.Errorf("creating a client: %w", err)
	}
	return karmadaReader{karmadaClient}, nil
}

// listClaims reads the Works of a cluster, and returns an index of the manifests in these Works.
func (k karmadaReader) listClaims(ctx context.Context, cluster string) (work.ManifestIndex, error) {
	namespace := work.ExecutionNamespace(cluster)
	var works []workv1alpha1.Work
	err := forEachObject(ctx, k.Resource(workv1alpha1.GroupVersion.WithResource("works")).Namespace(namespace),
		func(stored *unstructured.Unstructured) error {
			one := workv1alpha1.Work{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &one); err != nil {
				return fmt.Errorf("reading Work %s/%s: %w", namespace, stored.GetName(), err)
			}
			works = append(works, one)
			return nil
		})
	if err != nil {
		return work.ManifestIndex{}, fmt.Errorf("listing the Works in namespace %s of the control plane: %w", namespace, err)
	}
	return work.NewManifestIndex(cluster, works)
}

// verifySettled returns an error if the cluster's execution namespace may lack Works.
func (k karmadaReader) verifySettled(ctx context.Context, cluster string) error {
	name := work.ExecutionNamespace(cluster)
	stored, err := k.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return work.VerifyWorksComplete(name, nil, time.Now())
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s of the control plane: %w", name, err)
	}
	namespace := &corev1.Namespace{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, namespace); err != nil {
		return fmt.Errorf("reading namespace %s of the control plane: %w", name, err)
	}
	return work.VerifyWorksComplete(name, namespace, time.Now())
}

// listAwaited returns the objects that the bindings expect in the clusters.
func (k karmadaReader) listAwaited(ctx context.Context, clusters []string) (work.ExpectedObjects, error) {
	awaited := work.NewExpectedObjects(clusters...)
	for resource, namespaced := range map[string]bool{"resourcebindings": true, "clusterresourcebindings": false} {
		err := forEachObject(ctx, k.Resource(workv1alpha2.GroupVersion.WithResource(resource)), func(stored *unstructured.Unstructured) error {
			of := binding.New(namespaced)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, of); err != nil {
				return fmt.Errorf("reading %s/%s: %w", stored.GetNamespace(), stored.GetName(), err)
			}
			awaited.AddBinding(of.BindingSpec())
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing the %s of the control plane: %w", resource, err)
		}
	}
	return awaited, nil
}

// forEachObject calls call for each stored object, page by page. The caller adds the resource to the returned error.
func forEachObject(ctx context.Context, stored dynamic.ResourceInterface, call func(*unstructured.Unstructured) error) error {
	listPage := func(page metav1.ListOptions) (runtime.Object, error) { return stored.List(ctx, page) }
	return pager.New(pager.SimplePageFunc(listPage)).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("unexpected type %T", item)
		}
		return call(object)
	})
}
