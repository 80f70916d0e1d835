package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/diagnose"
)

// maxPods limits how many Pods, and how many events, are read from one member.
const maxPods = 100

// QueryMembers runs the queries in parallel. The facts of a member that does not respond in time contain the error.
func (r *Reader) QueryMembers(ctx context.Context, queries []diagnose.Query) map[string]diagnose.MemberFacts {
	targets := make([]command.Target, len(queries))
	byCluster := make(map[string]diagnose.Query, len(queries))
	for i, query := range queries {
		targets[i], byCluster[query.Cluster] = command.Target{Cluster: query.Cluster}, query
	}
	results, errs := command.QueryAll(ctx, targets, r.timeout, func(ctx context.Context, target command.Target) (diagnose.MemberFacts, error) {
		return r.queryMember(ctx, byCluster[target.Cluster])
	})
	observed := make(map[string]diagnose.MemberFacts, len(queries))
	for i, target := range targets {
		if errs[i] != nil {
			results[i] = diagnose.MemberFacts{Object: diagnose.Fact[*unstructured.Unstructured]{Err: errs[i]}}
		}
		observed[target.Cluster] = results[i]
	}
	return observed
}

// memberClient reads objects of one member.
type memberClient struct{ dynamic.Interface }

func (r *Reader) queryMember(ctx context.Context, query diagnose.Query) (observed diagnose.MemberFacts, err error) {
	config := rest.CopyConfig(r.config)
	config.Host = command.ProxyURL(r.config.Host, query.Cluster)
	member, err := dynamic.NewForConfigAndClient(config, r.transport)
	if err != nil {
		return observed, fmt.Errorf("creating a client: %w", err)
	}
	reader := memberClient{member}
	observed.Object = reader.read(ctx, r.Template.Mapping.Resource, query.Object.Namespace, query.Object.Name)
	if query.NeedsNamespace && query.Object.Namespace != "" {
		observed.HasNamespace = true
		observed.Namespace = reader.readNamespace(ctx, query.Object.Namespace)
	}
	if object := observed.Object.Value; query.NeedsPods && object != nil {
		observed.Pods = reader.readPods(ctx, object)
		observed.Events = reader.readEvents(ctx, object)
	}
	return observed, nil
}

func (m memberClient) read(ctx context.Context, resource schema.GroupVersionResource, namespace,
	name string) diagnose.Fact[*unstructured.Unstructured] {
	object, err := m.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return factOf(object, err)
}

func (m memberClient) readNamespace(ctx context.Context, name string) diagnose.Fact[*corev1.Namespace] {
	stored, err := m.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	namespace := &corev1.Namespace{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, namespace)
	}
	return factOf(namespace, err)
}

// readPods reads the Pods that the workload's selector selects. A workload without a selector has no Pods.
func (m memberClient) readPods(ctx context.Context, workload *unstructured.Unstructured) diagnose.Fact[[]corev1.Pod] {
	spec, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found {
		return diagnose.Fact[[]corev1.Pod]{}
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, selector); err != nil ||
		len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return diagnose.Fact[[]corev1.Pod]{}
	}
	return readList[corev1.Pod](ctx, m, "pods", workload.GetNamespace(),
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector), Limit: maxPods})
}

// readEvents reads the object's events.
func (m memberClient) readEvents(ctx context.Context, of *unstructured.Unstructured) diagnose.Fact[[]corev1.Event] {
	query := fields.OneTermEqualSelector("involvedObject.uid", string(of.GetUID()))
	return readList[corev1.Event](ctx, m, "events", of.GetNamespace(), metav1.ListOptions{FieldSelector: query.String(), Limit: maxPods})
}

func readList[T any](ctx context.Context, m memberClient, resource, namespace string, options metav1.ListOptions) diagnose.Fact[[]T] {
	list, err := m.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace).List(ctx, options)
	if err != nil {
		return diagnose.Fact[[]T]{Err: err}
	}
	items := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &items[i]); err != nil {
			return diagnose.Fact[[]T]{Err: fmt.Errorf("reading %s %s: %w", resource, list.Items[i].GetName(), err)}
		}
	}
	return diagnose.Fact[[]T]{Value: items}
}
