package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAggregate(t *testing.T) {
	tests := map[string]struct {
		template string
		statuses []string
		want     string // empty: the template itself
	}{
		"counters of Deployments are summed, other fields stay": {
			template: `{apiVersion: apps/v1, kind: Deployment, status: {replicas: 9, collisionCount: 1, conditions: [{type: Other}]}}`,
			statuses: []string{
				`{replicas: 1, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 4, unavailableReplicas: 5}`, noStatus,
				`{replicas: 10, updatedReplicas: 20, readyReplicas: 30, availableReplicas: 40, unavailableReplicas: 50}`,
			},
			want: `{replicas: 11, updatedReplicas: 22, readyReplicas: 33, availableReplicas: 44, unavailableReplicas: 55,
				collisionCount: 1, conditions: [{type: Other}]}`,
		},
		"counters of ReplicaSets are summed": {
			template: `{apiVersion: apps/v1, kind: ReplicaSet}`,
			statuses: []string{`{replicas: 1, readyReplicas: 2, availableReplicas: 3}`, `{replicas: 10, readyReplicas: 20, availableReplicas: 30}`},
			want:     `{replicas: 11, readyReplicas: 22, availableReplicas: 33}`,
		},
		"counters of DaemonSets are summed": {
			template: `{apiVersion: apps/v1, kind: DaemonSet}`,
			statuses: []string{
				`{currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 3, numberMisscheduled: 4, numberReady: 5, updatedNumberScheduled: 6, numberUnavailable: 7}`,
				`{currentNumberScheduled: 10, desiredNumberScheduled: 20, numberAvailable: 30, numberMisscheduled: 40, numberReady: 50, updatedNumberScheduled: 60, numberUnavailable: 70}`,
			},
			want: `{currentNumberScheduled: 11, desiredNumberScheduled: 22, numberAvailable: 33, numberMisscheduled: 44, numberReady: 55, updatedNumberScheduled: 66, numberUnavailable: 77}`,
		},
		"counters of StatefulSets are summed": {
			template: `{apiVersion: apps/v1, kind: StatefulSet}`,
			statuses: []string{
				`{availableReplicas: 1, currentReplicas: 2, readyReplicas: 3, replicas: 4, updatedReplicas: 5}`,
				`{availableReplicas: 10, currentReplicas: 20, readyReplicas: 30, replicas: 40, updatedReplicas: 50}`,
			},
			want: `{availableReplicas: 11, currentReplicas: 22, readyReplicas: 33, replicas: 44, updatedReplicas: 55}`,
		},
		"a zero sum is an absent field": {
			template: `{apiVersion: apps/v1, kind: Deployment, status: {replicas: 9, readyReplicas: 9}}`,
			statuses: []string{`{replicas: 1}`}, want: `{replicas: 1}`,
		},
		"a stored zero equals an absent field": {
			template: `{apiVersion: apps/v1, kind: DaemonSet, status: {currentNumberScheduled: 0, numberReady: 1}}`,
			statuses: []string{`{numberReady: 1}`},
		},
		"sums saturate at the maximum 32-bit number": {
			template: `{apiVersion: apps/v1, kind: Deployment}`,
			statuses: []string{`{replicas: 2147483647}`, `{replicas: 1}`, `{replicas: 9223372036854775807}`},
			want:     `{replicas: 2147483647}`,
		},
		"a CronJob has all active Jobs and the latest times": {
			template: `{apiVersion: batch/v1, kind: CronJob, status: {active: [{name: old}], lastScheduleTime: "2029-01-01T00:00:00Z"}}`,
			statuses: []string{
				`{active: [{name: a}], lastScheduleTime: "2030-01-01T00:00:00Z", lastSuccessfulTime: "2030-01-02T00:00:00Z"}`, noStatus,
				`{active: [{name: b}, {name: a}], lastScheduleTime: "2030-01-03T00:00:00Z"}`, `{lastSuccessfulTime: "2030-01-01T00:00:00Z"}`,
			},
			want: `{active: [{name: a}, {name: b}, {name: a}], lastScheduleTime: "2030-01-03T00:00:00Z", lastSuccessfulTime: "2030-01-02T00:00:00Z"}`,
		},
		"a volume has the most severe phase": {
			template: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available, reason: x}}`,
			statuses: []string{`{phase: Released}`, `{phase: Bound}`}, want: `{phase: Bound}`,
		},
		"a failed volume takes precedence": {
			template: `{apiVersion: v1, kind: PersistentVolume}`,
			statuses: []string{noStatus, `{phase: Bound}`, `{phase: Failed}`}, want: `{phase: Failed}`,
		},
		"an available volume precedes a bound volume": {
			template: `{apiVersion: v1, kind: PersistentVolume}`,
			statuses: []string{`{phase: Bound}`, `{phase: Available}`}, want: `{phase: Available}`,
		},
		"a volume without status is pending": {
			template: `{apiVersion: v1, kind: PersistentVolume}`, statuses: []string{`{phase: Available}`, noStatus}, want: `{phase: Pending}`,
		},
		"a volume keeps the time of the API server": {
			template: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Bound, lastPhaseTransitionTime: "2030-01-01T00:00:00Z"}}`,
			statuses: []string{`{phase: Bound}`},
		},
		"a claim is bound if all are bound": {
			template: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending, accessModes: [ReadWriteOnce]}}`,
			statuses: []string{`{phase: Bound}`, noStatus, `{phase: Bound}`}, want: `{phase: Bound}`,
		},
		"a lost claim is lost": {
			template: `{apiVersion: v1, kind: PersistentVolumeClaim}`,
			statuses: []string{`{phase: Bound}`, `{phase: Lost}`, `{phase: Pending}`}, want: `{phase: Lost}`,
		},
		"a claim that is not bound in one cluster": {
			template: `{apiVersion: v1, kind: PersistentVolumeClaim}`, statuses: []string{`{phase: Pending}`, `{phase: Bound}`}, want: `{phase: Pending}`,
		},
		"a claim without any status is pending": {
			template: `{apiVersion: v1, kind: PersistentVolumeClaim}`, statuses: []string{noStatus, noStatus}, want: `{phase: Pending}`,
		},
		"a claim in no cluster is pending": {
			template: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, want: `{phase: Pending}`,
		},
		"a budget is summed, with cluster names for its pods": {
			template: `{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {observedGeneration: 4, conditions: [{type: x, status: "True"}]}}`,
			statuses: []string{
				`{currentHealthy: 1, desiredHealthy: 2, expectedPods: 3, disruptionsAllowed: 4, disruptedPods: {p: "2030-01-01T00:00:00Z"}}`, noStatus,
				`{currentHealthy: 10, desiredHealthy: 20, expectedPods: 30, disruptionsAllowed: 40, disruptedPods: {p: "2030-01-02T00:00:00Z"}}`,
			},
			want: `{currentHealthy: 11, desiredHealthy: 22, expectedPods: 33, disruptionsAllowed: 44,
				disruptedPods: {m1/p: "2030-01-01T00:00:00Z", m3/p: "2030-01-02T00:00:00Z"}}`,
		},
		"an autoscaler is summed": {
			template: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {desiredReplicas: 1, currentMetrics: null, conditions: [{type: x, status: "True"}]}}`,
			statuses: []string{`{currentReplicas: 1, desiredReplicas: 2}`, noStatus, `{currentReplicas: 3, desiredReplicas: 4}`},
			want:     `{currentReplicas: 4, desiredReplicas: 6, currentMetrics: null}`,
		},
		"an equal autoscaler is not changed": {
			template: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentReplicas: 1, desiredReplicas: 2, currentMetrics: null}}`,
			statuses: []string{`{currentReplicas: 1, desiredReplicas: 2}`},
		},
		"a Pod in no cluster is not changed": {template: `{apiVersion: v1, kind: Pod, status: {phase: Running}}`},
		"a Pod has the containers of all clusters": {
			template: `{apiVersion: v1, kind: Pod, status: {phase: Pending, qosClass: Burstable, podIP: 1.2.3.4}}`,
			statuses: []string{
				`{phase: Running, containerStatuses: [{name: a, ready: true, restartCount: 3, state: {running: {startedAt: "2030-01-01T00:00:00Z"}}}]}`,
				`{phase: Running, podIP: 5.6.7.8, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1}}}], containerStatuses: [{name: a, state: {waiting: {reason: r}}}]}`,
			},
			want: `{phase: Running, qosClass: Burstable,
				containerStatuses: [
					{name: "", image: "", imageID: "", lastState: {}, restartCount: 0, ready: true, state: {running: {startedAt: "2030-01-01T00:00:00Z"}}},
					{name: "", image: "", imageID: "", lastState: {}, restartCount: 0, ready: false, state: {waiting: {reason: r}}}],
				initContainerStatuses: [
					{name: "", image: "", imageID: "", lastState: {}, restartCount: 0, ready: false, state: {terminated: {exitCode: 1, startedAt: null, finishedAt: null}}}]}`,
		},
		"a failed Pod takes precedence":          {template: `{apiVersion: v1, kind: Pod}`, statuses: []string{`{phase: Pending}`, `{phase: Failed}`}, want: `{phase: Failed}`},
		"a Pod without status is pending":        {template: `{apiVersion: v1, kind: Pod}`, statuses: []string{`{phase: Running}`, noStatus}, want: `{phase: Pending}`},
		"a running Pod precedes a succeeded Pod": {template: `{apiVersion: v1, kind: Pod}`, statuses: []string{`{phase: Succeeded}`, `{phase: Running}`}, want: `{phase: Running}`},
		"a Pod succeeds if all Pods succeed":     {template: `{apiVersion: v1, kind: Pod}`, statuses: []string{`{phase: Succeeded}`, `{phase: Succeeded}`}, want: `{phase: Succeeded}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, test.template)
			got := aggregateStatus(t, template, newItems(t, test.statuses...))
			if test.want == "" {
				same, err := rulesFor(template).AggregateStatus(t.Context(), template, newItems(t, test.statuses...))
				if err != nil || same != template {
					t.Errorf("the template was replaced by %v (error %v)", same, err)
				}
				return
			}
			if diff := cmp.Diff(parseMap(t, test.want), got); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRestartedContainersTakeTwoSteps checks updates of container statuses without names. No step
// may change a terminated container into a running one, because the API server rejects such an
// update. The second step must return the complete status.
func TestRestartedContainersTakeTwoSteps(t *testing.T) {
	const running, ended = `{state: {running: {}}}`, `{state: {terminated: {exitCode: 1}}}`
	lists := func(field string, states ...string) string { return field + `: [` + strings.Join(states, ", ") + `]` }
	for name, test := range map[string]struct {
		stored, reported string
		first            string // empty: all in one step
	}{
		"a container that is restarted":             {lists("containerStatuses", ended), lists("containerStatuses", running), `{phase: Running}`},
		"an init container that is restarted":       {lists("initContainerStatuses", ended), lists("initContainerStatuses", running), `{phase: Running}`},
		"a container beside a terminated one":       {lists("containerStatuses", ended, running), lists("containerStatuses", ended, `{ready: true, state: {running: {}}}`), `{phase: Running}`},
		"containers that terminate":                 {lists("containerStatuses", running, running), lists("containerStatuses", ended, running), ""},
		"the last container that terminates":        {lists("containerStatuses", ended, running), lists("containerStatuses", ended, ended), ""},
		"a terminated container that is removed":    {lists("containerStatuses", ended), "", ""},
		"containers after an empty list":            {"", lists("containerStatuses", ended, running), ""},
		"an equal list with a terminated container": {lists("containerStatuses", ended, running), lists("containerStatuses", ended, running), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(list string) *unstructured.Unstructured {
				return parseObject(t, `{apiVersion: v1, kind: Pod, status: {phase: Running, `+list+`}}`)
			}
			of := newItems(t, `{phase: Running, `+test.reported+`}`)
			want := aggregateStatus(t, parseObject(t, `{apiVersion: v1, kind: Pod}`), of)
			first, err := newSource().Rules(pod("").GroupVersionKind()).AggregateStatus(t.Context(), pod(test.stored), of)
			if err != nil {
				t.Fatal(err)
			}
			if test.first == "" {
				if again, err := rulesFor(first).AggregateStatus(t.Context(), first, of); err != nil || again != first {
					t.Errorf("there is a second step to %v (error %v)", again, err)
				}
				return
			}
			if diff := cmp.Diff(parseMap(t, test.first), first.Object["status"]); diff != "" {
				t.Errorf("the first step (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, aggregateStatus(t, first, of)); diff != "" {
				t.Errorf("the second step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObservedGeneration(t *testing.T) {
	const current = `{generation: 3, observedGeneration: 3, resourceTemplateGeneration: 7, %s: 1}`
	tests := map[string]struct {
		statuses []string
		want     int64
	}{
		"updated if all clusters are current":            {statuses: []string{current, current}, want: 7},
		"updated if a cluster has a later generation":    {statuses: []string{`{generation: 3, observedGeneration: 4, resourceTemplateGeneration: 8, %s: 1}`}, want: 7},
		"updated without clusters":                       {want: 7},
		"kept if a controller has not observed the spec": {statuses: []string{current, `{generation: 3, observedGeneration: 2, resourceTemplateGeneration: 7, %s: 1}`}, want: 5},
		"kept if a cluster has an older template":        {statuses: []string{`{generation: 3, observedGeneration: 3, resourceTemplateGeneration: 6, %s: 1}`, current}, want: 5},
		"kept without the generation of the template":    {statuses: []string{`{generation: 3, observedGeneration: 3, %s: 1}`}, want: 5},
		"kept without observedGeneration":                {statuses: []string{`{generation: 3, resourceTemplateGeneration: 7, %s: 1}`}, want: 5},
		"kept if a cluster has no status":                {statuses: []string{current, noStatus}, want: 5},
	}
	kinds := map[string]string{
		"Deployment": "replicas", "ReplicaSet": "replicas", "StatefulSet": "replicas", "DaemonSet": "numberReady",
	}
	for name, test := range tests {
		for kind, counter := range kinds {
			t.Run(kind+" "+name, func(t *testing.T) {
				template := parseObject(t, `{apiVersion: apps/v1, kind: `+kind+`, metadata: {generation: 7}, status: {observedGeneration: 5}}`)
				var statuses []string
				for _, status := range test.statuses {
					statuses = append(statuses, strings.ReplaceAll(status, "%s", counter))
				}
				got := aggregateStatus(t, template, newItems(t, statuses...))
				if got["observedGeneration"] != test.want {
					t.Errorf("observedGeneration = %v, want %v", got["observedGeneration"], test.want)
				}
			})
		}
	}
}

func TestAggregateErrorNamesCluster(t *testing.T) {
	tests := map[string]string{
		`{apiVersion: apps/v1, kind: Deployment}`:                                          `{replicas: many}`,
		`{apiVersion: apps/v1, kind: ReplicaSet}`:                                          `{replicas: 1.5}`,
		`{apiVersion: apps/v1, kind: StatefulSet}`:                                         `{observedGeneration: {}}`,
		`{apiVersion: apps/v1, kind: DaemonSet}`:                                           `[1]`,
		`{apiVersion: batch/v1, kind: Job}`:                                                `{conditions: {}}`,
		`{apiVersion: batch/v1, kind: CronJob}`:                                            `{lastScheduleTime: yesterday}`,
		`{apiVersion: v1, kind: Pod}`:                                                      `{phase: 1}`,
		`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`:                      `{loadBalancer: 1}`,
		`{apiVersion: v1, kind: PersistentVolume}`:                                         `text`,
		`{apiVersion: v1, kind: PersistentVolumeClaim}`:                                    `{phase: []}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress}`:                                `{loadBalancer: {ingress: {}}}`,
		`{apiVersion: policy/v1, kind: PodDisruptionBudget}`:                               `{disruptedPods: [1]}`,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {a: {b: 1}}}`: `{currentReplicas: "1"}`,
	}
	for template, status := range tests {
		object := parseObject(t, template)
		t.Run(object.GetKind(), func(t *testing.T) {
			_, err := rulesFor(object).AggregateStatus(t.Context(), object, newItems(t, `{}`, status))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", "m2")) {
				t.Errorf("error = %v, want one that names m2", err)
			}
		})
	}
}
