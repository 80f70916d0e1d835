package workstatus

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

func TestFailedInterpretationIsReportedOnTheWork(t *testing.T) {
	karmadaWork := &workv1alpha1.Work{}
	karmadaWork.Spec.Workload.Manifests = newManifests(t, "a", "b")
	var status workv1alpha1.WorkStatus
	steps := []struct {
		name        string
		reflections []reflection
		want        string
	}{
		{"no failure", []reflection{{}, {}}, ""},
		{"the health of one object", []reflection{{}, {healthErr: errors.New("health: line 3")}}, "health: line 3"},
		{"an object was not read", []reflection{{}}, "health: line 3"},
		{"the status of an object", []reflection{{statusErr: errors.New("status: line 4")}, {}}, "status: line 4"},
		{"all objects are interpreted again", []reflection{{}, {}}, ""},
	}
	for _, step := range steps {
		reportInterpretation(karmadaWork, step.reflections, &status, metav1.Now())
		var got string
		if condition := conditions.Get(status.Conditions, workv1alpha1.WorkStatusInterpreted); condition != nil {
			got = condition.Message
			if !conditions.IsKnown("Work", *condition) {
				t.Errorf("%s: the condition %v is not in the table", step.name, condition)
			}
		}
		if got != step.want {
			t.Errorf("%s: message %q, want %q", step.name, got, step.want)
		}
	}
}
