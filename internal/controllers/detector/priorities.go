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

// priorityClasses are templates as well, so that watching them unstructured costs
// no second watch.
var priorityClasses = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}

// schedulePriority is the value of the PriorityClass that the policy names; nil
// when it names none.
func (d *detector) schedulePriority(ctx context.Context, p policy.Object) (*int32, error) {
	named := p.PropagationSpec().SchedulePriority
	if !d.options.PriorityScheduling || named == nil {
		return nil, nil
	}
	if named.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not supported yet", named.PriorityClassSource)
	}
	class, err := d.template(ctx, reference{kind: priorityClasses, key: types.NamespacedName{Name: named.PriorityClassName}})
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, fmt.Errorf("priority class %q does not exist", named.PriorityClassName)
	}
	return new(priorityOf(class)), nil
}

// priorityOf is the value of a PriorityClass.
func priorityOf(class *unstructured.Unstructured) int32 {
	value, _, err := unstructured.NestedInt64(class.Object, "value")
	if err != nil {
		return 0 // the API server lets no such class in
	}
	return int32(value) //nolint:gosec // the API server bounds the value
}

// watchPriorityClasses looks again at the policies that name a PriorityClass when
// it appears or gets another value. The end of a class changes nothing: what was
// scheduled with it goes on.
func (s *policySource) watchPriorityClasses(ctx context.Context, queue policyQueue) error {
	informer, err := s.detector.cache.GetInformer(ctx, blank(priorityClasses), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(s.onPriorityClasses(queue))
	}
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// onPriorityClasses leaves out the classes that there are at the start: every
// template is looked at then.
func (s *policySource) onPriorityClasses(queue policyQueue) toolscache.ResourceEventHandler {
	wake := func(class *unstructured.Unstructured) {
		for _, p := range s.detector.policies.naming(class.GetName()) {
			if policy.IsCluster(p) == s.scope.cluster {
				addLow(queue, requestFor(p))
			}
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if class, ok := obj.(*unstructured.Unstructured); ok && !initial {
				wake(class)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if ok && ok2 && priorityOf(older) != priorityOf(newer) {
				wake(newer)
			}
		},
	}
}
