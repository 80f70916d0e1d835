package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"karmada.io/karmada/internal/domain/interpreter"
)

func TestReflectStatus(t *testing.T) {
	const metadata = `metadata: {generation: 3, annotations: {resourcetemplate.karmada.io/generation: "7"}}`
	tests := map[string]struct {
		object  string
		want    string // empty: nothing collected
		wantErr bool
	}{
		"Deployment": {
			object: `{apiVersion: apps/v1, kind: Deployment, ` + metadata + `, status: {replicas: 6, updatedReplicas: 5, readyReplicas: 4,
				availableReplicas: 3, unavailableReplicas: 2, observedGeneration: 3, collisionCount: 9, conditions: [{type: Available}]}}`,
			want: `{generation: 3, resourceTemplateGeneration: 7, replicas: 6, updatedReplicas: 5, readyReplicas: 4,
				availableReplicas: 3, unavailableReplicas: 2, observedGeneration: 3}`,
		},
		"conditions of a Deployment, without times, messages of problems only": {
			object: `{apiVersion: apps/v1, kind: Deployment, ` + metadata + `, status: {observedGeneration: 3, conditions: [
				{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: it goes on, lastUpdateTime: "2030-01-01T00:00:00Z"},
				{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota},
				{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: no minimum, lastTransitionTime: "2030-01-01T00:00:00Z"},
				{type: Other, status: "True"}, {type: Available}, text]}}`,
			want: `{generation: 3, resourceTemplateGeneration: 7, observedGeneration: 3, conditions: [
				{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: no minimum},
				{type: Progressing, status: "True", reason: ReplicaSetUpdated},
				{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}`,
		},
		"a long message is truncated": {
			object: `{apiVersion: apps/v1, kind: ReplicaSet, ` + metadata + `, status: {observedGeneration: 3, conditions: [
				{type: ReplicaFailure, status: "True", message: ` + strings.Repeat("x", 1000) + `}, {type: Available, status: "True"}]}}`,
			want: `{generation: 3, resourceTemplateGeneration: 7, observedGeneration: 3, conditions: [
				{type: ReplicaFailure, status: "True", message: ` + strings.Repeat("x", 253) + `...}]}`,
		},
		"ReplicaSet": {
			object: `{apiVersion: apps/v1, kind: ReplicaSet, ` + metadata + `, status: {replicas: 6, fullyLabeledReplicas: 5, readyReplicas: 4, availableReplicas: 3, observedGeneration: 3}}`,
			want:   `{generation: 3, resourceTemplateGeneration: 7, replicas: 6, readyReplicas: 4, availableReplicas: 3, observedGeneration: 3}`,
		},
		"DaemonSet": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, ` + metadata + `, status: {currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 3,
				numberMisscheduled: 4, numberReady: 5, updatedNumberScheduled: 6, numberUnavailable: 7, observedGeneration: 3, collisionCount: 8}}`,
			want: `{generation: 3, resourceTemplateGeneration: 7, currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 3,
				numberMisscheduled: 4, numberReady: 5, updatedNumberScheduled: 6, numberUnavailable: 7, observedGeneration: 3}`,
		},
		"StatefulSet, with the generation its controller has seen": {
			object: `{apiVersion: apps/v1, kind: StatefulSet, ` + metadata + `, status: {availableReplicas: 1, currentReplicas: 2, readyReplicas: 3,
				replicas: 4, updatedReplicas: 5, observedGeneration: 3, currentRevision: a}}`,
			want: `{generation: 3, resourceTemplateGeneration: 7, availableReplicas: 1, currentReplicas: 2, readyReplicas: 3,
				replicas: 4, updatedReplicas: 5, observedGeneration: 3}`,
		},
		"zeros are omitted": {
			object: `{apiVersion: apps/v1, kind: Deployment, ` + metadata + `, status: {replicas: 0, observedGeneration: 3}}`,
			want:   `{generation: 3, resourceTemplateGeneration: 7, observedGeneration: 3}`,
		},
		"a Deployment with zeros only": {
			object: `{apiVersion: apps/v1, kind: Deployment, ` + metadata + `, status: {replicas: 0}}`,
		},
		"a ReplicaSet with zeros only": {
			object: `{apiVersion: apps/v1, kind: ReplicaSet, ` + metadata + `, status: {replicas: 0}}`,
		},
		"no status": {object: `{apiVersion: apps/v1, kind: Deployment, ` + metadata + `}`},
		"a missing annotation is generation 0": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, status: {replicas: 1}}`,
			want:   `{generation: 3, replicas: 1}`,
		},
		"an invalid annotation is generation 0": {
			object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 3, annotations: {resourcetemplate.karmada.io/generation: seven}}, status: {numberReady: 1}}`,
			want:   `{generation: 3, numberReady: 1}`,
		},
		"Service with a load balancer": {
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {conditions: [{type: x}], loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`,
			want:   `{loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`,
		},
		"other Services have no status": {
			object: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`,
		},
		"Ingress, whole status": {
			object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}, other: 0}}`,
			want:   `{loadBalancer: {ingress: [{ip: 1.2.3.4}]}, other: 0}`,
		},
		"Job": {
			object: `{apiVersion: batch/v1, kind: Job, status: {active: 1, succeeded: 2, failed: 3, ready: 4, startTime: "2030-01-01T00:00:00Z",
				completionTime: "2030-01-02T00:00:00Z", conditions: [{type: Complete, status: "True"}], uncountedTerminatedPods: {}}}`,
			want: `{active: 1, succeeded: 2, failed: 3, startTime: "2030-01-01T00:00:00Z",
				completionTime: "2030-01-02T00:00:00Z", conditions: [{type: Complete, status: "True"}]}`,
		},
		"PodDisruptionBudget": {
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {disruptionsAllowed: 1, expectedPods: 2, desiredHealthy: 3, currentHealthy: 4,
				disruptedPods: {p: "2030-01-01T00:00:00Z"}, observedGeneration: 9}}`,
			want: `{disruptionsAllowed: 1, expectedPods: 2, desiredHealthy: 3, currentHealthy: 4, disruptedPods: {p: "2030-01-01T00:00:00Z"}}`,
		},
		"HorizontalPodAutoscaler": {
			object: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentReplicas: 1, desiredReplicas: 2, currentMetrics: null}}`,
			want:   `{currentReplicas: 1, desiredReplicas: 2}`,
		},
		"a budget without status":    {object: `{apiVersion: policy/v1, kind: PodDisruptionBudget}`},
		"other kinds, whole status":  {object: `{apiVersion: v1, kind: Pod, status: {phase: Running, podIP: ""}}`, want: `{phase: Running, podIP: ""}`},
		"a status must be an object": {object: `{apiVersion: apps/v1, kind: Deployment, status: [1]}`, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parseObject(t, test.object)
			got, err := interpreter.New(newSource()).Rules(object.GroupVersionKind()).ReflectStatus(t.Context(), object)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if got == nil || test.want == "" {
				if got != nil || test.want != "" {
					t.Fatalf("status = %v, want %q", got, test.want)
				}
				return
			}
			var status map[string]any
			if err := json.Unmarshal(got.Raw, &status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseMap(t, test.want), status); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}
