package memberproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/work"
)

// WorkGetter reads a Work in the control plane, or returns a NotFound error.
type WorkGetter func(ctx context.Context, namespace, name string) (*workv1alpha1.Work, error)

// NewWorkGetter returns a WorkGetter that reads from the Karmada API server.
func NewWorkGetter(karmada kubernetes.Interface) WorkGetter {
	return func(ctx context.Context, namespace, name string) (*workv1alpha1.Work, error) {
		raw, err := karmada.Discovery().RESTClient().Get().
			AbsPath("/apis", workv1alpha1.GroupVersion.String(), "namespaces", namespace, "works", name).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		karmadaWork := &workv1alpha1.Work{}
		return karmadaWork, json.Unmarshal(raw, karmadaWork)
	}
}

// requireDelivery returns an error unless the control plane delivers the object to the cluster. A
// cluster's response is not sufficient to send it a write, because every cluster can claim to have any
// object. The object's Work is the proof, because members cannot write Works. Its name is one of
// work.Names.
func (p *Proxy) requireDelivery(ctx context.Context, info *genericrequest.RequestInfo, cluster string,
	object *metav1.PartialObjectMetadata) error {
	kind := object.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if p.sources.Work == nil || object.UID == "" || resource.Resource != info.Resource {
		return notDelivered(info, cluster)
	}
	for _, name := range work.Names(kind.GroupKind(), object.Namespace, object.Name) {
		karmadaWork, err := p.sources.Work(ctx, work.ExecutionNamespace(cluster), name)
		switch {
		case err == nil && containsObject(karmadaWork, object):
			return nil
		case err != nil && !apierrors.IsNotFound(err):
			return fanout.NewUnavailableError(
				"cannot verify that %s was delivered to cluster %q: reading Work %s/%s: %v",
				fanout.DescribeObject(info), cluster, work.ExecutionNamespace(cluster), name, err)
		}
	}
	return notDelivered(info, cluster)
}

func containsObject(karmadaWork *workv1alpha1.Work, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(karmadaWork.Spec.Workload.Manifests, func(manifest workv1alpha1.Manifest) bool {
		delivered, err := fanout.ParseIdentity(manifest.Raw)
		return err == nil && delivered.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind() &&
			delivered.Namespace == object.Namespace && delivered.Name == object.Name
	})
}

func notDelivered(info *genericrequest.RequestInfo, cluster string) error {
	err := apierrors.NewMethodNotSupported(fanout.GroupResource(info), info.Verb)
	err.ErrStatus.Message = fmt.Sprintf(
		"cannot %s %s through all clusters: only cluster %q returns it, and Karmada did not deliver it there: if you trust it, use %s",
		info.Verb, fanout.DescribeObject(info), cluster, strings.Replace(fanout.OneClusterPath, "NAME", cluster, 1))
	return err
}
