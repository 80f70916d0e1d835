package detector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// PriorityClasses are templates as well. Watching them as unstructured objects shares the
// watch of the templates.
var priorityClassKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}

// schedulePriority returns the value of the PriorityClass that the policy names, or nil when
// it names none.
func (d *detector) schedulePriority(ctx context.Context, p policy.Object) (*int32, error) {
	priority := p.PropagationSpec().SchedulePriority
	if !d.options.PriorityScheduling || priority == nil {
		return nil, nil
	}
	if priority.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not supported yet", priority.PriorityClassSource)
	}
	class, err := d.template(ctx, templateRef{kind: priorityClassKind, key: types.NamespacedName{Name: priority.PriorityClassName}})
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, fmt.Errorf("priority class %q does not exist", priority.PriorityClassName)
	}
	return new(priorityValue(class)), nil
}

// priorityValue returns the value of a PriorityClass.
func priorityValue(class *unstructured.Unstructured) int32 {
	value, _, err := unstructured.NestedInt64(class.Object, "value")
	if err != nil {
		return 0 // the API server rejects such a class
	}
	return int32(value) //nolint:gosec // the API server bounds the value
}

// watchPriorityClasses queues the policies that name a PriorityClass when the class is created
// or its value changes. The deletion of a class changes nothing: existing bindings keep their
// priority.
func (s *policySource) watchPriorityClasses(ctx context.Context, queue policyQueue) error {
	informer, err := s.detector.cache.GetInformer(ctx, newObject(priorityClassKind), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(s.onPriorityClasses(queue))
	}
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// onPriorityClasses ignores the classes that exist at the start, because every template is
// reconciled then.
func (s *policySource) onPriorityClasses(queue policyQueue) toolscache.ResourceEventHandler {
	enqueuePolicies := func(class *unstructured.Unstructured) {
		for _, p := range s.detector.policies.withPriorityClass(class.GetName()) {
			if policy.IsCluster(p) == s.scope.clusterScoped {
				enqueueLowPriority(queue, requestFor(p))
			}
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if class, ok := obj.(*unstructured.Unstructured); ok && !initial {
				enqueuePolicies(class)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if ok && ok2 && priorityValue(older) != priorityValue(newer) {
				enqueuePolicies(newer)
			}
		},
	}
}
