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

// workOf wants one ConfigMap, and was made an hour before the restore.
func workOf(name string, change ...func(*workv1alpha1.Work)) workv1alpha1.Work {
	of := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(restoredAt.Add(-time.Hour))}}
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q}}`, name)),
	}}}
	for _, each := range change {
		each(&of)
	}
	return of
}

func inMember(name string, created time.Duration) MemberObject {
	return MemberObject{Kind: configMaps, Key: Key{"shop", name}, Created: restoredAt.Add(created)}
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
		works   []workv1alpha1.Work
		objects []MemberObject
		unasked bool
		want    []Kind
	}{
		"an object that a Work wants is no difference":          {[]workv1alpha1.Work{workOf("a")}, []MemberObject{inMember("a", -time.Minute)}, false, nil},
		"one that no Work wants came after the backup":          {nil, []MemberObject{inMember("a", -time.Minute)}, false, []Kind{Orphan}},
		"one younger than the restore was made again":           {[]workv1alpha1.Work{workOf("a")}, []MemberObject{inMember("a", time.Minute)}, false, []Kind{MadeAgain}},
		"unless its Work is younger too":                        {[]workv1alpha1.Work{workOf("a", young)}, []MemberObject{inMember("a", time.Minute)}, false, nil},
		"an object that is not there is missing":                {[]workv1alpha1.Work{workOf("a")}, nil, false, []Kind{Missing}},
		"unless the member was not asked for its kind":          {[]workv1alpha1.Work{workOf("a")}, nil, true, nil},
		"a deletion that waits":                                 {[]workv1alpha1.Work{workOf("a", deleted, condition(workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue))}, []MemberObject{inMember("a", 0)}, false, []Kind{Held}},
		"a deletion under way is none":                          {[]workv1alpha1.Work{workOf("a", deleted)}, nil, false, nil},
		"what the member refuses":                               {[]workv1alpha1.Work{workOf("a", condition(workv1alpha1.WorkApplied, metav1.ConditionFalse))}, []MemberObject{inMember("a", -time.Minute)}, false, []Kind{NotApplied}},
		"differences are sorted":                                {[]workv1alpha1.Work{workOf("a")}, []MemberObject{inMember("c", 0), inMember("b", 0)}, false, []Kind{Missing, Orphan, Orphan}},
		"a Work that cannot be read wants nothing":              {[]workv1alpha1.Work{{}}, nil, false, nil},
		"a Work whose manifest is broken does not end the list": {[]workv1alpha1.Work{{Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{}}}}}}, []MemberObject{inMember("a", 0)}, false, []Kind{Orphan}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []Kind
			for _, each := range Differences(New("b", Restored, restoredAt, restoredAt), test.works, test.objects, func(schema.GroupKind) bool { return !test.unasked }) {
				got = append(got, each.Kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
