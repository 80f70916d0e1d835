package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func podTemplate(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	template := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(`{spec: `+spec+`}`), template); err != nil {
		t.Fatalf("reading %q: %v", spec, err)
	}
	return template
}

func TestPodRequest(t *testing.T) {
	tests := map[string]struct {
		spec string
		want map[corev1.ResourceName]string
	}{
		"containers are summed": {
			spec: `{containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 200m}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "300m", "memory": "1Gi"},
		},
		"a missing request is the limit, per resource": {
			spec: `{containers: [{resources: {requests: {cpu: 100m}, limits: {cpu: "1", memory: 1Gi}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "100m", "memory": "1Gi"},
		},
		"the maximum of init containers and containers, per resource": {
			spec: `{containers: [{resources: {requests: {cpu: 100m, memory: 2Gi}}}],
				initContainers: [{resources: {requests: {cpu: "1", memory: 1Gi}}}, {resources: {limits: {cpu: "2"}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "2", "memory": "2Gi"},
		},
		"a sidecar runs beside the containers": {
			spec: `{containers: [{resources: {requests: {cpu: 100m}}}],
				initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 50m}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "150m"},
		},
		"an init container runs beside the sidecars started before it": {
			spec: `{containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [
				{resources: {requests: {cpu: 220m}}},
				{restartPolicy: Always, resources: {requests: {cpu: 50m}}},
				{resources: {requests: {cpu: 200m}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "250m"},
		},
		"the overhead is added to the maximum": {
			spec: `{overhead: {cpu: 10m}, containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [{resources: {requests: {cpu: "1"}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "1010m"},
		},
		"pod level requests replace those of containers, the overhead is added": {
			spec: `{overhead: {cpu: 10m}, resources: {requests: {cpu: "1", ephemeral-storage: 9Gi}}, containers: [
				{resources: {requests: {cpu: 100m, memory: 1Gi, ephemeral-storage: 1Gi}}}], initContainers: [{resources: {requests: {cpu: "2"}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "1010m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
		},
		"a pod level limit is used without a request": {
			spec: `{resources: {limits: {cpu: "1", memory: 4Gi, hugepages-2Mi: 2Mi}}, containers: [{resources: {requests: {memory: 1Gi}}}]}`,
			want: map[corev1.ResourceName]string{"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"},
		},
		"zeros are omitted": {
			spec: `{containers: [{resources: {requests: {cpu: "0", memory: 1Gi}}}]}`,
			want: map[corev1.ResourceName]string{"memory": "1Gi"},
		},
		"no requests": {spec: `{containers: [{}]}`},
		"scalar resources are included, others are not": {
			spec: `{containers: [{resources: {requests: {
				pods: "1", ephemeral-storage: 1Gi, hugepages-2Mi: 2Mi, attachable-volumes-aws: "1", nvidia.com/gpu: "2",
				kubernetes.io/batch: "3", storage: 1Gi, requests.nvidia.com/gpu: "4", unheardof: "5"}}}]}`,
			want: map[corev1.ResourceName]string{
				"pods": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi", "attachable-volumes-aws": "1",
				"nvidia.com/gpu": "2", "kubernetes.io/batch": "3",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := podTemplate(t, test.spec)
			before := template.DeepCopy()
			var want *workv1alpha2.ReplicaRequirements
			if len(test.want) > 0 {
				want = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{}}
				for resourceName, quantity := range test.want {
					want.ResourceRequest[resourceName] = resource.MustParse(quantity)
				}
			}
			if diff := cmp.Diff(want, PodRequirements(template)); diff != "" {
				t.Errorf("requirements differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was modified:\n%s", diff)
			}
		})
	}
}

func TestNodeClaim(t *testing.T) {
	required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "In", Values: []string{"ssd"}}},
	}}}
	tests := map[string]struct {
		spec string
		want *workv1alpha2.NodeClaim
	}{
		"no constraints":    {spec: `{containers: []}`},
		"an empty selector": {spec: `{nodeSelector: {}, tolerations: []}`},
		"the node selector": {
			spec: `{nodeSelector: {a: b}}`,
			want: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"a": "b"}},
		},
		"the tolerations": {
			spec: `{tolerations: [{key: a, operator: Exists}]}`,
			want: &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Key: "a", Operator: "Exists"}}},
		},
		"the required affinity": {
			spec: `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
				{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}}`,
			want: &workv1alpha2.NodeClaim{HardNodeAffinity: required},
		},
		"preferred affinity is ignored": {
			spec: `{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got *workv1alpha2.NodeClaim
			if requirements := PodRequirements(podTemplate(t, test.spec)); requirements != nil {
				got = requirements.NodeClaim
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("claim differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodRequestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpu := func(label string) corev1.ResourceList {
			milli := rapid.Int64Range(0, 1000).Draw(t, label)
			return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
		}
		spec := corev1.PodSpec{Overhead: cpu("overhead")}
		var sum, greatest int64
		for range rapid.IntRange(0, 4).Draw(t, "containers") {
			request := cpu("container")
			sum += request.Cpu().MilliValue()
			spec.Containers = append(spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: request}})
		}
		always := corev1.ContainerRestartPolicyAlways
		var sidecars int64
		for range rapid.IntRange(0, 4).Draw(t, "init containers") {
			request := cpu("init container")
			container := corev1.Container{Resources: corev1.ResourceRequirements{Limits: request}}
			greatest = max(greatest, sidecars+request.Cpu().MilliValue())
			if rapid.Bool().Draw(t, "sidecar") {
				container.RestartPolicy = &always
				sidecars += request.Cpu().MilliValue()
			}
			spec.InitContainers = append(spec.InitContainers, container)
		}
		want := max(sum+sidecars, greatest) + spec.Overhead.Cpu().MilliValue()
		request := podRequest(&spec)
		if got := request.Cpu().MilliValue(); got != want {
			t.Fatalf("request = %dm, want %dm", got, want)
		}
		if _, listed := request[corev1.ResourceCPU]; listed != (want > 0) {
			t.Fatalf("a request of %dm is listed: %v", want, listed)
		}
	})
}
