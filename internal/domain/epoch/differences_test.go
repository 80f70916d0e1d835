package epoch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

var (
	restoredAt = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
)

// newWork returns a Work with one ConfigMap that was created one hour before the restore.
func newWork(name string, change ...func(*workv1alpha1.Work)) workv1alpha1.Work {
	of := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(restoredAt.Add(-time.Hour))}}
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q}}`, name)),
	}}}
	for _, each := range change {
		each(&of)
	}
	return of
}

func newMemberObject(name string, created time.Duration) MemberObject {
	return MemberObject{Kind: configMaps, Key: ObjectKey{"shop", name}, Created: restoredAt.Add(created)}
}

func TestDifferences(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) func(*workv1alpha1.Work) {
		return func(of *workv1alpha1.Work) {
			of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{Type: kind, Status: status})
		}
	}
	deleted := func(of *workv1alpha1.Work) { of.DeletionTimestamp = &metav1.Time{Time: restoredAt} }
	young := func(of *workv1alpha1.Work) { of.CreationTimestamp = metav1.NewTime(restoredAt.Add(time.Minute)) }
	tests := map[string]struct {
		works     []workv1alpha1.Work
		objects   []MemberObject
		notListed bool
		want      []DifferenceKind
	}{
		"an object of a Work is no difference":             {[]workv1alpha1.Work{newWork("a")}, []MemberObject{newMemberObject("a", -time.Minute)}, false, nil},
		"an object without a Work is an orphan":            {nil, []MemberObject{newMemberObject("a", -time.Minute)}, false, []DifferenceKind{DifferenceOrphan}},
		"an object younger than the restore was recreated": {[]workv1alpha1.Work{newWork("a")}, []MemberObject{newMemberObject("a", time.Minute)}, false, []DifferenceKind{DifferenceRecreated}},
		"not if its Work is younger too":                   {[]workv1alpha1.Work{newWork("a", young)}, []MemberObject{newMemberObject("a", time.Minute)}, false, nil},
		"a missing object":                                 {[]workv1alpha1.Work{newWork("a")}, nil, false, []DifferenceKind{DifferenceMissing}},
		"a kind that was not listed is not missing":        {[]workv1alpha1.Work{newWork("a")}, nil, true, nil},
		"a held deletion":                                  {[]workv1alpha1.Work{newWork("a", deleted, condition(workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue))}, []MemberObject{newMemberObject("a", 0)}, false, []DifferenceKind{DifferenceDeletionHeld}},
		"a deletion in progress is no difference":          {[]workv1alpha1.Work{newWork("a", deleted)}, nil, false, nil},
		"an object that the member rejects":                {[]workv1alpha1.Work{newWork("a", condition(workv1alpha1.WorkApplied, metav1.ConditionFalse))}, []MemberObject{newMemberObject("a", -time.Minute)}, false, []DifferenceKind{DifferenceNotApplied}},
		"differences are sorted":                           {[]workv1alpha1.Work{newWork("a")}, []MemberObject{newMemberObject("c", 0), newMemberObject("b", 0)}, false, []DifferenceKind{DifferenceMissing, DifferenceOrphan, DifferenceOrphan}},
		"a Work without manifests":                         {[]workv1alpha1.Work{{}}, nil, false, nil},
		"a Work with an invalid manifest is skipped":       {[]workv1alpha1.Work{{Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{}}}}}}, []MemberObject{newMemberObject("a", 0)}, false, []DifferenceKind{DifferenceOrphan}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []DifferenceKind
			for _, each := range Differences(New("b", CauseRestored, restoredAt, restoredAt), test.works, test.objects, func(schema.GroupKind) bool { return !test.notListed }) {
				got = append(got, each.Kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
