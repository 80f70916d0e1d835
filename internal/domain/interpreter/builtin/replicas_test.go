package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestReplicas(t *testing.T) {
	cpu := &workv1alpha2.ReplicaRequirements{
		ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}
	const pod = `{spec: {priorityClassName: high, containers: [{name: a, resources: {requests: {cpu: 100m}}}]}}`
	tests := map[string]struct {
		template     string
		replicas     int32
		requirements *workv1alpha2.ReplicaRequirements
		wantErr      bool
	}{
		"spec.replicas of a Deployment": {
			template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, template: ` + pod + `}}`,
			replicas: 3, requirements: cpu,
		},
		"spec.replicas of a ReplicaSet": {
			template: `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2, template: ` + pod + `}}`,
			replicas: 2, requirements: cpu,
		},
		"spec.replicas of a StatefulSet": {
			template: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 4, template: ` + pod + `}}`,
			replicas: 4, requirements: cpu,
		},
		"absent replicas are 0": {template: `{apiVersion: apps/v1, kind: Deployment, spec: {}}`},
		"null replicas are 0":   {template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: null}}`},
		"replicas must be a number": {
			template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: many}}`, wantErr: true,
		},
		"parallelism of a Job": {
			template: `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 5, template: ` + pod + `}}`,
			replicas: 3, requirements: cpu,
		},
		"parallelism of a Job is limited by completions": {
			template: `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 2}}`, replicas: 2,
		},
		"parallelism of a Job without completions": {
			template: `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3}}`, replicas: 3,
		},
		"a Job without parallelism has none": {
			template: `{apiVersion: batch/v1, kind: Job, spec: {completions: 2}}`,
		},
		"a Pod has one replica": {
			template: `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}]}}`,
			replicas: 1, requirements: cpu,
		},
		"a quantity must be valid": {
			template: `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {requests: {cpu: lots}}}]}}`, wantErr: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, test.template)
			before := template.DeepCopy()
			replicas, requirements, err := rulesFor(template).Replicas(t.Context(), template)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if err == nil && replicas != test.replicas {
				t.Errorf("replicas = %d, want %d", replicas, test.replicas)
			}
			if diff := cmp.Diff(test.requirements, requirements); diff != "" {
				t.Errorf("requirements differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was modified:\n%s", diff)
			}
		})
	}
}

func TestPriorityClassInRequirements(t *testing.T) {
	tests := map[string]struct {
		pod     string
		gate    bool
		want    string
		wantNil bool
	}{
		"gate enabled":                       {pod: `{nodeSelector: {a: b}, priorityClassName: high}`, gate: true, want: "high"},
		"gate disabled":                      {pod: `{nodeSelector: {a: b}, priorityClassName: high}`},
		"not for a pod without requirements": {pod: `{priorityClassName: high}`, gate: true, wantNil: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, `{apiVersion: v1, kind: Pod, spec: `+test.pod+`}`)
			source := New(Options{Now: now, ResourceQuotaEstimate: test.gate})
			_, got, err := source.Rules(template.GroupVersionKind()).Replicas(t.Context(), template)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != test.wantNil {
				t.Fatalf("requirements = %+v, want nil %v", got, test.wantNil)
			}
			if got != nil && got.PriorityClassName != test.want {
				t.Errorf("priority class = %q, want %q", got.PriorityClassName, test.want)
			}
		})
	}
}

func TestRevise(t *testing.T) {
	tests := map[string]struct {
		template string
		want     string // empty: unchanged
		wantErr  bool
	}{
		"spec.replicas of a Deployment": {
			template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, paused: true}}`,
			want:     `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 7, paused: true}}`,
		},
		"spec.replicas of a ReplicaSet": {
			template: `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 0}}`,
			want:     `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 7}}`,
		},
		"spec.replicas of a StatefulSet": {
			template: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3}}`,
			want:     `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 7}}`,
		},
		"spec.parallelism of a Job": {
			template: `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, completions: 9}}`,
			want:     `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 7, completions: 9}}`,
		},
		"unchanged if the field is absent":        {template: `{apiVersion: apps/v1, kind: Deployment, spec: {}}`},
		"unchanged without a spec":                {template: `{apiVersion: apps/v1, kind: Deployment}`},
		"unchanged if the number is equal":        {template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 7}}`},
		"an error when the field is not a number": {template: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: x}}`, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, test.template)
			before := template.DeepCopy()
			got, err := rulesFor(template).ReviseReplicas(t.Context(), template, 7)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was modified:\n%s", diff)
			}
			if test.want == "" {
				if got != template {
					t.Errorf("the template was replaced by %v", got)
				}
				return
			}
			if diff := cmp.Diff(parseObject(t, test.want), got); diff != "" {
				t.Errorf("template differs (-want +got):\n%s", diff)
			}
		})
	}
}
