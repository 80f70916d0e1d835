package builtin

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Statuses of a Deployment in one cluster.
const (
	healthyStatus          = `{replicas: 1, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`
	rollingStatus          = `{replicas: 1, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`
	deadlineExceededStatus = `{replicas: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: no minimum},
		{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out}]}`
	overQuotaStatus = `{observedGeneration: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: no minimum},
		{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}`
	unschedulableStatus = `{replicas: 1, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable},
		{type: PodFailure, status: "True", reason: Unschedulable, message: no node has enough cpu}]}`
)

func newItem(name, status string, applied bool, message string, health workv1alpha2.ResourceHealth) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: applied, AppliedMessage: message, Health: health}
	if status != noStatus {
		raw, err := yaml.YAMLToJSON([]byte(status))
		if err != nil {
			raw = []byte(status)
		}
		item.Status = &runtime.RawExtension{Raw: raw}
	}
	return item
}

func newReporter(name, status string) workv1alpha2.AggregatedStatusItem {
	return newItem(name, status, true, "", workv1alpha2.ResourceHealthy)
}

// conditionTexts returns the conditions of a Deployment as text.
func conditionTexts(t *testing.T, of *unstructured.Unstructured) []string {
	t.Helper()
	var status struct {
		Conditions []reportedCondition `json:"conditions"`
	}
	encoded, err := json.Marshal(of.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &status); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}

func TestDeploymentConditions(t *testing.T) {
	const (
		availableInAll  = "Available=True MinimumReplicasAvailable: True in every cluster"
		rolledOutInAll  = "Progressing=True NewReplicaSetAvailable: True in every cluster"
		availableStored = `{conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}]}`
	)
	rejected := newItem("m2", noStatus, false, "exceeded quota", workv1alpha2.ResourceUnknown)
	silent := newItem("m2", noStatus, false, "", workv1alpha2.ResourceUnknown)
	tests := map[string]struct {
		stored string
		items  []workv1alpha2.AggregatedStatusItem
		want   []string
	}{
		"True in every cluster": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), newReporter("m2", healthyStatus)},
			want:  []string{availableInAll, rolledOutInAll},
		},
		"a rollout is complete only if it is complete in every cluster": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), newReporter("m2", rollingStatus)},
			want:  []string{availableInAll, "Progressing=True ReplicaSetUpdated: True in every cluster"},
		},
		"the message contains unavailable clusters with the cause": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), newReporter("m2", deadlineExceededStatus)},
			want: []string{
				"Available=False MinimumReplicasUnavailable: m2: no minimum", "Progressing=False ProgressDeadlineExceeded: m2: timed out"},
		},
		"the message contains clusters that rejected the template": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), rejected},
			want: []string{
				"Available=False NotApplied: m2: not applied: exceeded quota", "Progressing=False NotApplied: m2: not applied: exceeded quota"},
		},
		"a rejection takes precedence over a healthy earlier version": {
			items: []workv1alpha2.AggregatedStatusItem{newItem("m1", healthyStatus, false, "no such path", workv1alpha2.ResourceHealthy)},
			want: []string{
				"Available=False NotApplied: m1: not applied: no such path", "Progressing=False NotApplied: m1: not applied: no such path"},
		},
		"an exceeded deadline in one cluster is the reason": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", deadlineExceededStatus), rejected},
			want: []string{
				"Available=False MinimumReplicasUnavailable: m1: no minimum; m2: not applied: exceeded quota",
				"Progressing=False ProgressDeadlineExceeded: m1: timed out; m2: not applied: exceeded quota"},
		},
		"the message contains an exceeded quota": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), newReporter("m2", overQuotaStatus)},
			want: []string{
				"Available=False MinimumReplicasUnavailable: m2: no minimum", rolledOutInAll,
				"ReplicaFailure=True FailedCreate: m2: exceeded quota"},
		},
		"the message contains unschedulable Pods": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", unschedulableStatus)},
			want:  []string{availableInAll, "PodFailure=True Unschedulable: m1: no node has enough cpu"},
		},
		"a failure that ended is removed": {
			stored: `{conditions: [{type: ReplicaFailure, status: "True"}, {type: PodFailure, status: "True"}]}`,
			items:  []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus)},
			want:   []string{availableInAll, rolledOutInAll},
		},
		"a cluster without a status makes the condition Unknown": {
			items: []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus), silent},
			want:  []string{"Available=Unknown NotReported: m2: nothing is reported yet", "Progressing=Unknown NotReported: m2: nothing is reported yet"},
		},
		"no condition before any cluster reported": {items: []workv1alpha2.AggregatedStatusItem{silent}},
		"a stored condition becomes Unknown without reports": {
			stored: availableStored, items: []workv1alpha2.AggregatedStatusItem{silent},
			want: []string{"Available=Unknown NotReported: m2: nothing is reported yet"},
		},
		"no condition without clusters": {},
		"a stored condition becomes False without clusters": {
			stored: availableStored, want: []string{"Available=False NoClusterChosen: no cluster is chosen"},
		},
		"health is used if an agent reports no conditions": {
			items: []workv1alpha2.AggregatedStatusItem{
				newItem("m1", `{replicas: 1}`, true, "", workv1alpha2.ResourceHealthy), newItem("m2", `{replicas: 1}`, true, "", workv1alpha2.ResourceUnhealthy)},
			want: []string{"Available=False MinimumReplicasUnavailable: m2: MinimumReplicasUnavailable", rolledOutInAll},
		},
		"unknown health is Unknown": {
			stored: availableStored,
			items:  []workv1alpha2.AggregatedStatusItem{newItem("m1", `{replicas: 1}`, true, "", workv1alpha2.ResourceUnknown)},
			want:   []string{"Available=Unknown NotReported: m1: nothing is reported yet"},
		},
		"conditions of other types are kept": {
			stored: `{conditions: [{type: Other, status: "True", reason: r, message: m}]}`,
			items:  []workv1alpha2.AggregatedStatusItem{newReporter("m1", healthyStatus)},
			want:   []string{"Other=True r: m", availableInAll, rolledOutInAll},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}}`)
			if test.stored != "" {
				template.Object["status"] = parseMap(t, test.stored)
			}
			got, err := rulesFor(template).AggregateStatus(t.Context(), template, test.items)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, conditionTexts(t, got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if again, err := rulesFor(template).AggregateStatus(t.Context(), got, test.items); err != nil || again != got {
				t.Errorf("the same items again make a difference (error %v)", err)
			}
		})
	}
}

func TestConditionsOfDeploymentScaledToZero(t *testing.T) {
	template := parseObject(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}}`)
	want := []string{
		"Available=True MinimumReplicasAvailable: 0 replicas are wanted, so no cluster has a copy",
		"Progressing=True NewReplicaSetAvailable: 0 replicas are wanted, so no cluster has a copy",
	}
	got, err := rulesFor(template).AggregateStatus(t.Context(), template, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, conditionTexts(t, got)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestConditionTimesChangeWithStatus(t *testing.T) {
	clock := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	source := New(Options{Now: func() time.Time { return clock }})
	template := parseObject(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}}`)
	steps := []struct {
		does   string
		status string
		want   string
	}{
		{"appears", rollingStatus, "2030-01-01T12:00:00Z"},
		{"gets another reason", healthyStatus, "2030-01-01T12:00:00Z"},
		{"fails", deadlineExceededStatus, "2030-01-01T14:00:00Z"},
		{"recovers", healthyStatus, "2030-01-01T15:00:00Z"},
	}
	for _, step := range steps {
		next, err := source.Rules(template.GroupVersionKind()).AggregateStatus(t.Context(), template, []workv1alpha2.AggregatedStatusItem{newReporter("m1", step.status)})
		if err != nil {
			t.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(next.Object, "status", "conditions")
		progress := list[1]
		for _, field := range []string{"lastTransitionTime", "lastUpdateTime"} {
			if got := entryText(progress, field); got != step.want {
				t.Errorf("%s of a condition that %s is %s, want %s", field, step.does, got, step.want)
			}
		}
		template, clock = next, clock.Add(time.Hour)
	}
}

func TestUndeliveredTemplateIsNotObserved(t *testing.T) {
	const current = `{generation: 3, observedGeneration: 3, resourceTemplateGeneration: 7, replicas: 1, numberReady: 1}`
	rejected := newItem("m2", noStatus, false, "exceeded quota", workv1alpha2.ResourceUnknown)
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			template := parseObject(t, `{apiVersion: apps/v1, kind: `+kind+`, metadata: {generation: 7}, status: {observedGeneration: 7}}`)
			got := aggregateStatus(t, template, []workv1alpha2.AggregatedStatusItem{newReporter("m1", current), rejected})
			if got["observedGeneration"] != int64(6) {
				t.Errorf("observedGeneration = %v, want the generation before", got["observedGeneration"])
			}
			template.Object["status"] = got
			if got := aggregateStatus(t, template, []workv1alpha2.AggregatedStatusItem{newReporter("m1", current), newReporter("m2", current)}); got["observedGeneration"] != int64(7) {
				t.Errorf("observedGeneration = %v after the cause is gone", got["observedGeneration"])
			}
		})
	}
}
