package builtin

import "testing"

func TestHealthy(t *testing.T) {
	workload := func(kind, spec, status string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {generation: 2}, spec: ` + spec + `, status: ` + status + `}`
	}
	pod := func(status string) string { return `{apiVersion: v1, kind: Pod, status: ` + status + `}` }
	tests := map[string]struct {
		object  string
		want    bool
		wantErr bool
	}{
		"a Deployment rolled out": {
			object: workload("Deployment", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}`), want: true,
		},
		"a Deployment not observed": {
			object: workload("Deployment", `{replicas: 2}`, `{observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}`),
		},
		"a Deployment half updated": {
			object: workload("Deployment", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}`),
		},
		"a Deployment half available": {
			object: workload("Deployment", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}`),
		},
		"a Deployment without spec.replicas": {
			object: workload("Deployment", `{}`, `{observedGeneration: 2}`), want: true,
		},
		"a Deployment without status": {object: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}}`},
		"an invalid Deployment": {
			object: workload("Deployment", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: x}`), wantErr: true,
		},
		"a StatefulSet rolled out": {
			object: workload("StatefulSet", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}`), want: true,
		},
		"a StatefulSet half available": {
			object: workload("StatefulSet", `{replicas: 2}`, `{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}`),
		},
		"a ReplicaSet available": {
			object: workload("ReplicaSet", `{replicas: 2}`, `{observedGeneration: 2, availableReplicas: 2}`), want: true,
		},
		"a ReplicaSet not observed": {object: workload("ReplicaSet", `{replicas: 2}`, `{observedGeneration: 1, availableReplicas: 2}`)},
		"a ReplicaSet half available": {
			object: workload("ReplicaSet", `{replicas: 2}`, `{observedGeneration: 2, availableReplicas: 1}`),
		},
		"a ReplicaSet without spec.replicas": {object: workload("ReplicaSet", `{}`, `{observedGeneration: 2}`), want: true},
		"a DaemonSet on all nodes": {
			object: workload("DaemonSet", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`), want: true,
		},
		"a DaemonSet not observed": {
			object: workload("DaemonSet", `{}`, `{observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`),
		},
		"a DaemonSet half updated": {
			object: workload("DaemonSet", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`),
		},
		"a DaemonSet half available": {
			object: workload("DaemonSet", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}`),
		},
		"a Service without a load balancer":  {object: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, want: true},
		"a Service with an ip":               {object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}, {ip: 1.2.3.4}]}}}`, want: true},
		"a Service with a hostname":          {object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: h}]}}}`, want: true},
		"a Service without an address":       {object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}]}}}`},
		"an Ingress with an ip":              {object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, want: true},
		"an Ingress without an address":      {object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}`},
		"a bound claim":                      {object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, want: true},
		"a pending claim":                    {object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`},
		"a claim without status":             {object: `{apiVersion: v1, kind: PersistentVolumeClaim}`},
		"a Pod that succeeded":               {object: pod(`{phase: Succeeded}`), want: true},
		"a Pod that is ready":                {object: pod(`{phase: Running, conditions: [{type: PodScheduled, status: "False"}, {type: Ready, status: "True"}]}`), want: true},
		"a Pod that is not ready":            {object: pod(`{phase: Running, conditions: [{type: Ready, status: "False"}]}`)},
		"a Pod of unknown readiness":         {object: pod(`{phase: Running}`)},
		"a Pod that is ready but Pending":    {object: pod(`{phase: Pending, conditions: [{type: Ready, status: "True"}]}`)},
		"a Pod that failed":                  {object: pod(`{phase: Failed}`)},
		"a budget with enough healthy Pods":  {object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 2, desiredHealthy: 2}}`, want: true},
		"a budget with too few healthy Pods": {object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 1, desiredHealthy: 2}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := parseObject(t, test.object)
			got, err := rulesFor(object).IsHealthy(t.Context(), object)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("healthy = %v, want %v", got, test.want)
			}
		})
	}
}
