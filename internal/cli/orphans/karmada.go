package orphans

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// karmadaReader reads Works, bindings and namespaces of the control plane.
type karmadaReader struct{ dynamic.Interface }

func (o *options) newKarmadaReader() (karmadaReader, error) {
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
	err := forEachObject(ctx, k.Resource(workv1alpha1.GroupVersion.WithResource("works")).Namespace(namespace), func(stored *unstructured.Unstructured) error {
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

// checkSettled returns an error if Works may be missing in the execution namespace of the cluster.
func (k karmadaReader) checkSettled(ctx context.Context, cluster string) error {
	name := work.ExecutionNamespace(cluster)
	stored, err := k.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return work.CheckWorksComplete(name, nil, time.Now())
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s of the control plane: %w", name, err)
	}
	namespace := &corev1.Namespace{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, namespace); err != nil {
		return fmt.Errorf("reading namespace %s of the control plane: %w", name, err)
	}
	return work.CheckWorksComplete(name, namespace, time.Now())
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

// forEachObject calls a function for each object of a resource. The caller adds the name of the
// resource to the error.
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
