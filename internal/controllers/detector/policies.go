package detector

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/policy"
)

// scope is one of the two kinds of policies.
type scope struct {
	// controller is the name in logs and metrics, view the plural of the kind.
	controller, view string
	cluster          bool
	finalizer        string
	blank            func() policy.Object
}

var scopes = [...]scope{
	{
		controller: "propagation-policy-detector", view: "PropagationPolicies",
		finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer,
		blank:     func() policy.Object { return &policyv1alpha1.PropagationPolicy{} },
	},
	{
		controller: "cluster-propagation-policy-detector", view: "ClusterPropagationPolicies", cluster: true,
		finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer,
		blank:     func() policy.Object { return &policyv1alpha1.ClusterPropagationPolicy{} },
	},
}

// blankPolicy is an empty policy of the kind that a claim names.
func blankPolicy(claim policy.Claim) policy.Object {
	if claim.IsCluster() {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

// addPolicies registers a controller for each kind of policy and returns what
// tells that the policies are known.
func (d *detector) addPolicies(mgr manager.Manager) ([]*view, error) {
	var views []*view
	for _, of := range scopes {
		options := controllerOptions[reconcile.Request](mgr, d.policyWorkers(of), d.options)
		options.Reconciler = &policyReconciler{detector: d, scope: of}
		c, err := controller.New(of.controller, mgr, options)
		if err != nil {
			return nil, fmt.Errorf("adding %s: %w", of.controller, err)
		}
		watching := &policySource{detector: d, scope: of, view: newView(of.view)}
		if err := c.Watch(source.TypedSource[reconcile.Request](watching)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", of.view, err)
		}
		views = append(views, watching.view)
	}
	return views, nil
}

func (d *detector) policyWorkers(of scope) int {
	if of.cluster {
		return d.options.ClusterPolicyWorkers
	}
	return d.options.PolicyWorkers
}

// policySource puts policies into the catalog first and queues them then: when a
// policy is worked on, all decisions know it already.
type policySource struct {
	detector *detector
	scope    scope
	view     *view
}

type policyQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// String names the source in logs.
func (s *policySource) String() string { return s.scope.view }

// Start implements source.TypedSource.
func (s *policySource) Start(ctx context.Context, queue policyQueue) error {
	if s.detector.options.PriorityScheduling {
		if err := s.watchPriorityClasses(ctx, queue); err != nil {
			return err
		}
	}
	return s.view.open(ctx, s.detector.cache, s.scope.blank(), toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(policy.Object); ok {
				s.added(queue, added, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(policy.Object)
			newer, ok2 := after.(policy.Object)
			if ok && ok2 {
				s.changed(queue, older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := final(obj).(policy.Object); ok {
				s.deleted(gone)
			}
		},
	})
}

// WaitForSync implements source.TypedSyncingSource.
func (s *policySource) WaitForSync(ctx context.Context) error { return s.view.wait(ctx) }

// added queues a new policy. After a start every template is looked at anyway;
// only what does not begin with a template has to be caught up.
func (s *policySource) added(queue policyQueue, p policy.Object, initial bool) {
	s.detector.policies.put(p)
	if !initial {
		queue.Add(requestFor(p))
		return
	}
	if p.GetDeletionTimestamp() != nil || s.detector.mayPreempt(p) {
		addLow(queue, requestFor(p))
	}
}

func (s *policySource) changed(queue policyQueue, before, after policy.Object) {
	s.detector.policies.put(after)
	if !relevant(before, after) {
		return
	}
	if policy.ClaimOf(before) != policy.ClaimOf(after) {
		// A watch that was interrupted shows a policy that was deleted and made anew as
		// one that changed. What its predecessor claimed bears another id.
		s.lookAtClaimed(before)
	}
	queue.Add(requestFor(after))
	if !s.detector.options.Preemption {
		return
	}
	for _, overtaker := range s.detector.policies.overtakers(before, after) {
		queue.Add(requestFor(overtaker))
	}
}

// deleted looks at the templates of a policy that went without letting go of
// them.
func (s *policySource) deleted(p policy.Object) {
	s.detector.policies.delete(p)
	s.lookAtClaimed(p)
}

// lookAtClaimed queues the templates that bear the claim of a policy which is gone.
// Before there is a queue, they are all about to be looked at.
func (s *policySource) lookAtClaimed(p policy.Object) {
	select {
	case <-s.detector.entrance.opened:
		for _, r := range s.detector.claims.of(policy.ClaimOf(p).ID) {
			addLow(s.detector.entrance.queue, request{reference: r, cause: policy.TemplateChanged})
		}
	default:
	}
}

// relevant reports whether an update of a policy concerns templates: another
// spec, the end, or the id without which it cannot claim.
func relevant(before, after policy.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		policy.ClaimOf(before) != policy.ClaimOf(after)
}

func requestFor(p policy.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: keyOf(p)}
}

// policyReconciler works on the policies of one scope.
type policyReconciler struct {
	detector *detector
	scope    scope
}

// Reconcile implements reconcile.Reconciler.
func (r *policyReconciler) Reconcile(ctx context.Context, asked reconcile.Request) (reconcile.Result, error) {
	p := r.scope.blank()
	if err := r.detector.karmada.Get(ctx, asked.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() != nil {
		return settle(r.dismiss(ctx, p))
	}
	return settle(errors.Join(r.detector.spread(ctx, p), r.detector.preempt(ctx, p)))
}

// spread asks for a pass over every template that the policy holds or could
// have. The pass releases a template that is selected no longer.
func (d *detector) spread(ctx context.Context, p policy.Object) error {
	found, err := d.heldBy(ctx, policy.ClaimOf(p))
	if err != nil {
		return err
	}
	for _, where := range reaches(p) {
		found.Insert(d.waiting.within(where)...)
	}
	found.Insert(d.near(p, found)...)
	return d.enqueue(ctx, policy.PolicyChanged, found.UnsortedList()...)
}

// heldBy returns the templates that carry the claim, or whose bindings do.
func (d *detector) heldBy(ctx context.Context, claim policy.Claim) (sets.Set[reference], error) {
	if claim.ID == "" {
		return sets.New[reference](), nil
	}
	bound, err := d.boundBy(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sets.New(d.claims.of(claim.ID)...).Insert(bound...), nil
}

// dismiss releases everything that a deleted policy holds, and then lets the
// policy go. Bindings and what was made of them stay as they are. A template
// that is not seen yet is released when it is: its policy is gone then.
func (r *policyReconciler) dismiss(ctx context.Context, p policy.Object) error {
	if !controllerutil.ContainsFinalizer(p, r.scope.finalizer) {
		return nil
	}
	claim := policy.ClaimOf(p)
	held, err := r.detector.heldBy(ctx, claim)
	if err != nil {
		return err
	}
	var failures []error
	for one := range held {
		failures = append(failures, r.detector.release(ctx, claim, one))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	let, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	controllerutil.RemoveFinalizer(let, r.scope.finalizer)
	_, err = patch.Object(ctx, r.detector.karmada, p, let)
	return client.IgnoreNotFound(err)
}

// unseen reports whether the policy of a claim exists although no decision knows
// it yet.
func (d *detector) unseen(ctx context.Context, claim policy.Claim) (bool, error) {
	err := d.live.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, blankPolicy(claim))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("asking for policy %s: %w", claim, err)
	}
	return err == nil, nil
}
