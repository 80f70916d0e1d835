package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

const deployment = `{"apiVersion":"apps.example.com/v1","kind":"Workload","metadata":{"name":"web","namespace":"shop"},
"spec":{"replicas":3,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"nodeSelector":{"disk":"ssd"},
"containers":[{"name":"web","image":"nginx","resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]}}}}`

func BenchmarkSmallReplicas(b *testing.B) {
	benchmarkReplicas(b, `function GetReplicas(obj) return obj.spec.replicas end`)
}

func BenchmarkReplicas(b *testing.B) {
	benchmarkReplicas(b, `local kube = require("kube")
function GetReplicas(obj) return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template) end`)
}

func benchmarkReplicas(b *testing.B, script string) {
	rules := rulesOf(mustNewEngine(b, Options{Now: time.Now}), configv1alpha1.InterpreterOperationInterpretReplica, script)
	template := objectOf(b, deployment)
	b.ReportAllocs()
	for b.Loop() {
		if n, _, err := rules.Replicas(context.Background(), template); n != 3 || err != nil {
			b.Fatal(n, err)
		}
	}
}

const healthScript = `
local function condition(conditions, kind)
  for _, c in ipairs(conditions or {}) do
    if c.type == kind then return c.status end
  end
end
function InterpretHealth(obj)
  if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then return false end
  for i = 1, #obj.status.conditions do
    if obj.status.conditions[i].reason == "Broken" then return false end
  end
  return condition(obj.status.conditions, "Ready") == "True"
end`

func largeObject(b testing.TB) *unstructured.Unstructured {
	var conditions, labels []string
	for i := range 20 {
		conditions = append(conditions, fmt.Sprintf(`{"type":"Condition%d","status":"True","reason":"Fine","message":"%s"}`, i, strings.Repeat("all is well ", 20)))
		labels = append(labels, fmt.Sprintf(`"label%d":"%s"`, i, strings.Repeat("v", 60)))
	}
	conditions = append(conditions, `{"type":"Ready","status":"True"}`)
	var pods []string
	for i := range 70 {
		pods = append(pods, fmt.Sprintf(`{"name":"pod-%d","image":"registry.example.com/team/image:%d","limits":{"cpu":"1","memory":"2Gi"},"ports":[{"port":80}],"text":"%s"}`, i, i, strings.Repeat("x", 60)))
	}
	return objectOf(b, fmt.Sprintf(`{"metadata":{"generation":5,"name":"web","labels":{%s}},"spec":{"pods":[%s]},"status":{"observedGeneration":5,"conditions":[%s]}}`,
		strings.Join(labels, ","), strings.Join(pods, ","), strings.Join(conditions, ",")))
}

func BenchmarkHealthOf20KiB(b *testing.B) {
	object := largeObject(b)
	if n := len(mustEncode(b, object.Object)); n < 20<<10 {
		b.Fatalf("the object has only %d bytes", n)
	}
	rules := rulesOf(mustNewEngine(b, Options{Now: time.Now}), configv1alpha1.InterpreterOperationInterpretHealth, healthScript)
	b.ReportAllocs()
	for b.Loop() {
		if healthy, err := rules.IsHealthy(context.Background(), object); !healthy || err != nil {
			b.Fatal(healthy, err)
		}
	}
}
