package binding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// InterpretationCondition returns the condition of a binding that reports the result of an
// interpretation of its template. err is the error of the interpretation. conditionType is
// TemplateInterpreted, DependenciesInterpreted or StatusAggregated. The result is nil if the
// interpretation succeeded and did not fail before: most bindings never have the condition.
func InterpretationCondition(bound Object, conditionType string, err error) *metav1.Condition {
	condition := &metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: workv1alpha2.InterpretedReason,
		Message: "The interpretation succeeds again.", ObservedGeneration: bound.GetGeneration(),
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, workv1alpha2.InterpreterFailedReason, err.Error()
		return condition
	}
	if stored := conditions.Get(bound.BindingStatus().Conditions, conditionType); stored == nil || stored.Status == metav1.ConditionTrue {
		return nil
	}
	return condition
}
