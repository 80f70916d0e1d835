package interpreters

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Report writes the result of an interpretation to a condition of the binding, if the condition
// changes. result is the error of the interpretation or nil, and conditionType is one of the types of
// binding.InterpretationCondition. An interpreter.BusyError changes nothing.
//
// Report returns the current binding, which is bound itself if nothing was written, and the result. If
// the binding is out of date, it returns an error for which loop.IsStale holds instead of the result:
// the next pass interprets again and reports then.
func Report[B binding.Object](ctx context.Context, karmada client.StatusClient, bound B, conditionType string, result error,
	now time.Time) (current B, err error) {
	if interpreter.IsBusy(result) {
		return bound, result
	}
	current, err = writeCondition(ctx, karmada, bound, binding.InterpretationCondition(bound, conditionType, result), now)
	if err = loop.StaleIfNotFound(err); loop.IsStale(err) {
		return bound, err
	}
	return current, errors.Join(result, err)
}

// writeCondition writes the condition unless the binding has it already. A nil condition changes
// nothing.
func writeCondition[B binding.Object](ctx context.Context, karmada client.StatusClient, bound B, condition *metav1.Condition,
	now time.Time) (current B, err error) {
	if condition == nil {
		return bound, nil
	}
	reported, ok := bound.DeepCopyObject().(B)
	if !ok {
		return bound, fmt.Errorf("copying a binding: the copy is no %T", bound)
	}
	condition.LastTransitionTime = metav1.NewTime(now)
	if !conditions.Set(&reported.BindingStatus().Conditions, *condition) {
		return bound, nil
	}
	if _, err := patch.Status(ctx, karmada, bound, reported); err != nil {
		return bound, err
	}
	return reported, nil
}
