package bindingstatus

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop/looptest"
)

// aggregating returns a rule that reports a fixed number of replicas.
func aggregating(replicas int64) interpreter.Rules {
	return interpreter.Rules{AggregateStatus: func(_ context.Context, template *unstructured.Unstructured, _ []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		aggregated := template.DeepCopy()
		return aggregated, unstructured.SetNestedField(aggregated.Object, replicas, "status", "replicas")
	}}
}

func TestChangedRuleReachesTemplates(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion.WithKind("Deployment")
	unplaced := webBinding()
	unplaced.Name, unplaced.UID = "unplaced", "unplaced"
	clusterWide := &workv1alpha2.ClusterResourceBinding{Spec: webBinding("m1").Spec}
	clusterWide.Name = "wide"
	w, table := newFixture(t, webBinding("m1"), unplaced, clusterWide, webTemplate(), webWork("m1")), &interpreters.Table{}
	w.rules = table
	w.expectWrites("status of web-deployment")
	var queued []string
	for _, namespaced := range []bool{true, false} {
		watched := func() source.Source { return w.newRulesSource(namespaced) }
		for _, request := range looptest.QueuedBy(t, watched, func() { table.Set(deployments, aggregating(4)) }) {
			queued = append(queued, request.String())
		}
	}
	slices.Sort(queued)
	if diff := cmp.Diff([]string{"/wide", "shop/web-deployment"}, queued); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	w.expectWrites("status of web")
	table.Set(deployments, aggregating(5))
	w.expectWrites("status of web")
	if got := w.template().Status.Replicas; got != 5 {
		t.Errorf("the template reports %d replicas", got)
	}
}

func TestRuleThatIsRemovedDuringAPassWritesNothing(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion.WithKind("Deployment")
	table := &interpreters.Table{}
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.rules = table
	table.Set(deployments, interpreter.Rules{
		AggregateStatus: func(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			table.Delete(deployments)
			return aggregating(4).AggregateStatus(ctx, template, items)
		},
	})
	w.expectWrites("status of web-deployment", "status of web")
	template := &unstructured.Unstructured{}
	if err := w.writeAggregated(t.Context(), templateAggregation{template: webBinding().Spec.Resource}, template); err != nil {
		t.Error(err)
	}
}

func TestRejectedStatusIsReported(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion.WithKind("Deployment")
	w, table := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1")), &interpreters.Table{}
	w.rules = table
	table.Set(deployments, aggregating(4))
	report := func() string {
		t.Helper()
		if condition := conditions.Get(w.binding().Status.Conditions, workv1alpha2.StatusAggregated); condition != nil {
			return string(condition.Status) + " " + condition.Message
		}
		return ""
	}
	w.patchError = apierrors.NewServiceUnavailable("the API server starts")
	if _, err := w.Reconcile(t.Context(), request("shop", "web-deployment")); err == nil || report() != "" {
		t.Errorf("error %v, condition %q; want an error and no condition, because the status is not at fault", err, report())
	}
	w.patchError = apierrors.NewInvalid(deployments.GroupKind(), "web", field.ErrorList{
		field.Invalid(field.NewPath("status", "replicas"), 4, "must be less than 4"),
	})
	if _, err := w.Reconcile(t.Context(), request("shop", "web-deployment")); !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want the one of the API server, so that the queue retries", err)
	}
	if got := report(); !strings.HasPrefix(got, "False ") || !strings.Contains(got, "status.replicas") {
		t.Errorf("condition %q", got)
	}
	w.patchError = nil
	w.reconcile()
	if got := report(); !strings.HasPrefix(got, "True ") {
		t.Errorf("condition %q after the write succeeds", got)
	}
}
