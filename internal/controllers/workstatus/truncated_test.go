package workstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestTruncatedConditionStaysUntilAllStatusesAreComplete(t *testing.T) {
	karmadaWork := &workv1alpha1.Work{}
	karmadaWork.Spec.Workload.Manifests = newManifests(t, "a", "b")
	status := &workv1alpha1.WorkStatus{}
	var got []string
	for _, reflections := range [][]reflection{
		{newReflection(0, "a", "Healthy"), newReflection(1, "b", "Healthy")},
		{{truncation: "the status of a is large"}, newReflection(1, "b", "Healthy")},
		{newReflection(1, "b", "Healthy")},
		{newReflection(0, "a", "Healthy"), newReflection(1, "b", "Healthy")},
	} {
		reportTruncated(karmadaWork, reflections, status, metav1.NewTime(time.Unix(1, 0)))
		message := "none"
		for _, c := range status.Conditions {
			message = string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		got = append(got, message)
	}
	cut := "True StatusTooLarge: the status of a is large"
	if diff := cmp.Diff([]string{"none", cut, cut, "none"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
