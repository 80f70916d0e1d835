package builtin

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Statuses of Jobs in one cluster.
const (
	jobRunning  = `{active: 2, succeeded: 1, startTime: "2030-01-01T01:00:00Z"}`
	jobComplete = `{succeeded: 3, startTime: "2030-01-01T02:00:00Z", completionTime: "2030-01-01T05:00:00Z",
		conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`
	jobCompleteEarlier = `{succeeded: 2, startTime: "2030-01-01T01:00:00Z", completionTime: "2030-01-01T04:00:00Z",
		conditions: [{type: Complete, status: "True"}]}`
	jobFailed = `{failed: 4, startTime: "2030-01-01T03:00:00Z", conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True"}]}`
	jobMixed  = `{startTime: "2030-01-01T03:00:00Z", conditions: [{type: Suspended, status: "True"}, {type: Complete, status: "False"}, {type: Failed, status: "True"}, {type: Complete, status: "True"}]}`
)

func TestAggregateJob(t *testing.T) {
	const times = `lastProbeTime: "2030-01-02T03:04:05Z", lastTransitionTime: "2030-01-02T03:04:05Z"`
	condition := func(kind, reason, message string) string {
		return `{type: ` + kind + `, status: "True", reason: ` + reason + `, message: "` + message + `", ` + times + `}`
	}
	failure := func(clusters string) string {
		message := "Job executed failed in member clusters " + clusters
		return `conditions: [` + condition("FailureTarget", "JobFailed", message) + `, ` + condition("Failed", "JobFailed", message) + `]`
	}
	success := `conditions: [` + condition("SuccessCriteriaMet", "CompletionsReached", "Job completed") + `, ` +
		condition("Complete", "Completed", "Job completed") + `]`
	tests := map[string]struct {
		status   string // of the template
		statuses []string
		want     string // empty: the template itself
	}{
		"counters of a running Job are summed": {
			statuses: []string{jobRunning, jobComplete},
			want:     `{active: 2, succeeded: 4, startTime: "2030-01-01T01:00:00Z"}`,
		},
		"the start time is set after all clusters started": {
			statuses: []string{jobRunning, noStatus}, want: `{active: 2, succeeded: 1}`,
		},
		"a stored start time is kept": {
			status:   `{startTime: "2030-01-01T09:00:00Z"}`,
			statuses: []string{jobRunning}, want: `{active: 2, succeeded: 1, startTime: "2030-01-01T09:00:00Z"}`,
		},
		"complete if all clusters are, at the latest time": {
			statuses: []string{jobComplete, jobCompleteEarlier},
			want:     `{succeeded: 5, startTime: "2030-01-01T01:00:00Z", completionTime: "2030-01-01T05:00:00Z", ` + success + `}`,
		},
		"not complete while a cluster has no status": {
			statuses: []string{jobComplete, noStatus}, want: `{succeeded: 3}`,
		},
		"not complete without clusters": {statuses: nil},
		"failed if one cluster failed": {
			statuses: []string{jobComplete, jobFailed},
			want:     `{succeeded: 3, failed: 4, startTime: "2030-01-01T02:00:00Z", ` + failure("m2") + `}`,
		},
		"the message contains all failed clusters": {
			statuses: []string{jobFailed, jobComplete, jobFailed},
			want:     `{succeeded: 3, failed: 8, startTime: "2030-01-01T02:00:00Z", ` + failure("m1,m3") + `}`,
		},
		"a failed Job gets a start time without all clusters": {
			statuses: []string{jobFailed, noStatus},
			want:     `{failed: 4, startTime: "2030-01-01T03:00:00Z", ` + failure("m1") + `}`,
		},
		"the first true condition of a cluster is used": {
			statuses: []string{jobMixed}, want: `{startTime: "2030-01-01T03:00:00Z", ` + failure("m1") + `}`,
		},
		"a failing Job is not failed while pods are active elsewhere": {
			statuses: []string{jobFailed, jobRunning},
			want: `{active: 2, succeeded: 1, failed: 4, startTime: "2030-01-01T01:00:00Z", conditions: [` +
				condition("FailureTarget", "JobFailed", "Job executed failed in member clusters m1") + `]}`,
		},
		"a failing Job stays failing without the failed cluster": {
			status: `{failed: 4, startTime: "2030-01-01T01:00:00Z", conditions: [` +
				condition("FailureTarget", "JobFailed", "Job executed failed in member clusters gone") + `]}`,
			statuses: []string{jobComplete},
			want:     `{succeeded: 3, failed: 4, startTime: "2030-01-01T01:00:00Z", ` + failure("gone") + `}`,
		},
		"a new message changes lastProbeTime but not lastTransitionTime": {
			status: `{active: 2, succeeded: 1, failed: 4, startTime: "2030-01-01T01:00:00Z", conditions: [
				{type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1", lastProbeTime: "2030-01-01T06:00:00Z", lastTransitionTime: "2030-01-01T06:00:00Z"}]}`,
			statuses: []string{jobFailed, jobRunning, jobFailed},
			want: `{active: 2, succeeded: 1, failed: 8, startTime: "2030-01-01T01:00:00Z", conditions: [
				{type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1,m3", lastProbeTime: "2030-01-02T03:04:05Z", lastTransitionTime: "2030-01-01T06:00:00Z"}]}`,
		},
		"succeeded and failed do not decrease if a cluster is removed": {
			status:   `{active: 5, succeeded: 6, failed: 7, startTime: "2030-01-01T01:00:00Z"}`,
			statuses: []string{jobRunning}, want: `{active: 2, succeeded: 6, failed: 7, startTime: "2030-01-01T01:00:00Z"}`,
		},
		"a complete Job is not changed": {
			status: `{conditions: [{type: Complete, status: "True"}]}`, statuses: []string{jobRunning},
		},
		"a failed Job is not changed": {
			status: `{conditions: [{type: Failed, status: "True"}]}`, statuses: []string{jobComplete},
		},
		"a false condition does not finish the Job": {
			status: `{conditions: [{type: Failed, status: "False"}]}`, statuses: []string{jobRunning},
			want: `{active: 2, succeeded: 1, startTime: "2030-01-01T01:00:00Z"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, `{apiVersion: batch/v1, kind: Job}`)
			if test.status != "" {
				template.Object["status"] = parseMap(t, test.status)
			}
			if test.want == "" {
				got, err := rulesFor(template).AggregateStatus(t.Context(), template, newItems(t, test.statuses...))
				if err != nil || got != template {
					t.Errorf("the template was replaced by %v (error %v)", got, err)
				}
				return
			}
			got := aggregateStatus(t, template, newItems(t, test.statuses...))
			if diff := cmp.Diff(parseMap(t, test.want), got); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJobTransitions checks the aggregated status of a Job against the validation rules of the API
// server, over a random history in changing clusters.
func TestJobTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
		clock := now()
		source := New(Options{Now: func() time.Time { return clock }})
		var old batchv1.JobStatus
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			clock = clock.Add(time.Second)
			items := rapid.SliceOfN(rapid.Custom(generateJobItem), 0, 4).Draw(t, "items")
			for i := range items {
				items[i].ClusterName = fmt.Sprint("m", i)
			}
			got, err := source.Rules(template.GroupVersionKind()).AggregateStatus(t.Context(), template, items)
			if err != nil {
				t.Fatal(err)
			}
			status, err := typed[batchv1.JobStatus](got.Object, "status")
			if err != nil {
				t.Fatal(err)
			}
			checkJobStatus(t, &status)
			checkJobTransition(t, &old, &status)
			template, old = got, status
		}
	})
}

// generateJobItem generates a status that the Job controller of a cluster could write.
func generateJobItem(t *rapid.T) workv1alpha2.AggregatedStatusItem {
	start := metav1.NewTime(now().Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "start")) * time.Minute))
	end := metav1.NewTime(start.Add(time.Hour))
	count := rapid.Int32Range(0, 5)
	status := batchv1.JobStatus{StartTime: &start, Succeeded: count.Draw(t, "succeeded"), Failed: count.Draw(t, "failed")}
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 0:
		return workv1alpha2.AggregatedStatusItem{}
	case 1:
		status.Active = count.Draw(t, "active")
	case 2:
		status.CompletionTime = &end
		status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
	case 3:
		status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return workv1alpha2.AggregatedStatusItem{Status: &runtime.RawExtension{Raw: raw}}
}

func checkJobStatus(t *rapid.T, status *batchv1.JobStatus) {
	complete, failed := isConditionTrue(status.Conditions, batchv1.JobComplete), isConditionTrue(status.Conditions, batchv1.JobFailed)
	failing, met := isConditionTrue(status.Conditions, batchv1.JobFailureTarget), isConditionTrue(status.Conditions, batchv1.JobSuccessCriteriaMet)
	for claim, wrong := range map[string]bool{
		"complete and failed":                 complete && failed,
		"criteria met and failing":            met && failing,
		"complete without SuccessCriteriaMet": complete && !met,
		"failed without FailureTarget":        failed && !failing,
		"finished with active pods":           (complete || failed) && status.Active > 0,
		"finished without a start":            (complete || failed) && status.StartTime == nil,
		"complete without an end":             complete && status.CompletionTime == nil,
		"an end without being complete":       !complete && status.CompletionTime != nil,
	} {
		if wrong {
			t.Fatalf("%s: %+v", claim, status)
		}
	}
	if (complete || failed) && status.Conditions[len(status.Conditions)-1].Type != finishedType(status.Conditions) {
		t.Fatalf("the preceding condition does not come first: %+v", status.Conditions)
	}
}

func checkJobTransition(t *rapid.T, old, status *batchv1.JobStatus) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		if isConditionTrue(old.Conditions, kind) && !isConditionTrue(status.Conditions, kind) {
			t.Fatalf("%s was removed", kind)
		}
	}
	if status.Succeeded < old.Succeeded || status.Failed < old.Failed {
		t.Fatalf("counters decreased from %+v to %+v", old, status)
	}
	if old.StartTime != nil && !old.StartTime.Equal(status.StartTime) {
		t.Fatalf("the start time changed from %v to %v", old.StartTime, status.StartTime)
	}
}
