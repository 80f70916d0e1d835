package detector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// noMatchGrace is how long a template waits for a policy before it is reported. The wait is needed
// because users create templates and policies in any order.
const noMatchGrace = 3 * time.Second

// noMatchReporter reports templates that no policy selects.
type noMatchReporter struct {
	binder   *binder
	policies *policyCatalog
	waiting  *waitingTemplates
	// addAfter queues a template after a delay.
	addAfter func(templateRequest, time.Duration)
	events   *loop.Events
	// grace is how long a template waits before it is reported.
	grace time.Duration
}

// awaitPolicy handles a template that no policy selects. old is true for a template in
// oldTemplates. awaitPolicy does not report such a template, because an earlier process has
// reported it.
func (n *noMatchReporter) awaitPolicy(ctx context.Context, r templateRef, template *unstructured.Unstructured, old bool) error {
	bound, err := n.binder.findBinding(ctx, r)
	if err != nil {
		return err
	}
	if err := n.binder.unclaimLeftover(ctx, template, bound); err != nil || old {
		return err
	}
	cause := policy.CheckMatch(template, bound, n.policies.nearestMiss)
	if cause == nil {
		return nil
	}
	if remaining := n.grace - time.Since(n.waiting.since(r)); remaining > 0 {
		// The cause is PolicyChanged, because no change by a user caused this request.
		n.addAfter(r.request(policy.PolicyChanged), remaining)
		return nil
	}
	n.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, cause)
	return nil
}
