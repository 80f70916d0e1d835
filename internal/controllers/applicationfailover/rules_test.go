package applicationfailover

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop/looptest"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func healthRule() interpreter.Rules {
	return interpreter.Rules{IsHealthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return true, nil }}
}

func TestChangedRuleQueuesFailovers(t *testing.T) {
	otherVersion := deployments
	otherVersion.Version = "v2"
	tests := map[string]struct {
		bound func(*workv1alpha2.ResourceBinding)
		kind  schema.GroupVersionKind
		want  []string
	}{
		"an application with failover":       {nil, deployments, []string{"shop/web-deployment"}},
		"not an application without one":     {func(bound *workv1alpha2.ResourceBinding) { bound.Spec.Failover = nil }, deployments, nil},
		"not an application of another kind": {nil, otherVersion, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, table := newFixture(t, test.bound), &interpreters.Table{}
			f.rules = table
			var queued []string
			for _, request := range looptest.QueuedBy(t, f.newRulesSource, func() { table.Set(test.kind, healthRule()) }) {
				queued = append(queued, request.String())
			}
			if diff := cmp.Diff(test.want, queued); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHealthRuleStartsAndEndsFailover(t *testing.T) {
	f, table := newFixture(t, nil), &interpreters.Table{}
	f.rules = table
	f.reportHealth(0, unhealthy, healthy)
	f.reportHealth(time.Minute, unhealthy, healthy)
	f.expect("in m1 m2", 0)
	table.Set(deployments, healthRule())
	f.reportHealth(0, unhealthy, healthy)
	f.reportHealth(30*time.Second, unhealthy, healthy)
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:01:00Z"}`, 1)
	table.Delete(deployments)
	f.reportHealth(30*time.Second, unhealthy, healthy)
	f.expect("in m1 m2", 2)
}
