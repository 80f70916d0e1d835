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

// policyScope describes one of the two kinds of policies.
type policyScope struct {
	// controllerName is the name in logs and metrics, plural the plural of the kind.
	controllerName, plural string
	clusterScoped          bool
	finalizer              string
	newPolicy              func() policy.Object
}

var policyScopes = [...]policyScope{
	{
		controllerName: "propagation-policy-detector", plural: "PropagationPolicies",
		finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer,
		newPolicy: func() policy.Object { return &policyv1alpha1.PropagationPolicy{} },
	},
	{
		controllerName: "cluster-propagation-policy-detector", plural: "ClusterPropagationPolicies", clusterScoped: true,
		finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer,
		newPolicy: func() policy.Object { return &policyv1alpha1.ClusterPropagationPolicy{} },
	},
}

// newPolicyFor returns an empty policy of the kind that a claim names.
func newPolicyFor(claim policy.Claim) policy.Object {
	if claim.IsCluster() {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

// addPolicyControllers registers a controller for each kind of policy and returns the sync
// states of their handlers.
func (d *detector) addPolicyControllers(mgr manager.Manager) ([]*handlerSync, error) {
	var syncs []*handlerSync
	for _, scope := range policyScopes {
		options := controllerOptions[reconcile.Request](mgr, d.policyWorkers(scope), d.options)
		options.Reconciler = &policyReconciler{detector: d, scope: scope}
		c, err := controller.New(scope.controllerName, mgr, options)
		if err != nil {
			return nil, fmt.Errorf("adding %s: %w", scope.controllerName, err)
		}
		policies := &policySource{detector: d, scope: scope, sync: newHandlerSync(scope.plural)}
		if err := c.Watch(source.TypedSource[reconcile.Request](policies)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", scope.plural, err)
		}
		syncs = append(syncs, policies.sync)
	}
	return syncs, nil
}

func (d *detector) policyWorkers(scope policyScope) int {
	if scope.clusterScoped {
		return d.options.ClusterPolicyWorkers
	}
	return d.options.PolicyWorkers
}

// policySource adds a policy to the catalog before it queues the policy. When the policy is
// reconciled, all decisions include it already.
type policySource struct {
	detector *detector
	scope    policyScope
	sync     *handlerSync
}

type policyQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// String names the source in logs.
func (s *policySource) String() string { return s.scope.plural }

// Start implements source.TypedSource.
func (s *policySource) Start(ctx context.Context, queue policyQueue) error {
	if s.detector.options.PriorityScheduling {
		if err := s.watchPriorityClasses(ctx, queue); err != nil {
			return err
		}
	}
	return s.sync.watch(ctx, s.detector.cache, s.scope.newPolicy(), toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(policy.Object); ok {
				s.onAdd(queue, added, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(policy.Object)
			newer, ok2 := after.(policy.Object)
			if ok && ok2 {
				s.onUpdate(queue, older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			if removed, ok := objectOfDelete(obj).(policy.Object); ok {
				s.onDelete(removed)
			}
		},
	})
}

// WaitForSync implements source.TypedSyncingSource.
func (s *policySource) WaitForSync(ctx context.Context) error { return s.sync.waitForSync(ctx) }

// onAdd queues a new policy. After a start, every template is reconciled anyway, so only
// policies with work that no template triggers are queued: deletion and preemption.
func (s *policySource) onAdd(queue policyQueue, p policy.Object, initial bool) {
	s.detector.policies.put(p)
	if !initial {
		queue.Add(requestFor(p))
		return
	}
	if p.GetDeletionTimestamp() != nil || s.detector.mayPreempt(p) {
		enqueueLowPriority(queue, requestFor(p))
	}
}

func (s *policySource) onUpdate(queue policyQueue, before, after policy.Object) {
	s.detector.policies.put(after)
	if !isRelevantUpdate(before, after) {
		return
	}
	if policy.ClaimOf(before) != policy.ClaimOf(after) {
		// After an interrupted watch, a policy that was deleted and created again appears as
		// an update. The claims of the earlier policy have another ID.
		s.enqueueClaimed(before)
	}
	queue.Add(requestFor(after))
	if !s.detector.options.Preemption {
		return
	}
	for _, preemptor := range s.detector.policies.preemptorsAfterUpdate(before, after) {
		queue.Add(requestFor(preemptor))
	}
}

// onDelete queues the templates of a policy that was deleted without its finalizer.
func (s *policySource) onDelete(p policy.Object) {
	s.detector.policies.delete(p)
	s.enqueueClaimed(p)
}

// enqueueClaimed queues the templates that carry the claim of a deleted policy. Before the
// queue exists, all templates are about to be queued anyway.
func (s *policySource) enqueueClaimed(p policy.Object) {
	select {
	case <-s.detector.startup.started:
		for _, r := range s.detector.claims.templatesOf(policy.ClaimOf(p).ID) {
			enqueueLowPriority(s.detector.startup.queue, templateRequest{templateRef: r, cause: policy.TemplateChanged})
		}
	default:
	}
}

// isRelevantUpdate reports whether an update of a policy can affect templates: another spec, a
// deletion, or another permanent ID, which a claim requires.
func isRelevantUpdate(before, after policy.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		policy.ClaimOf(before) != policy.ClaimOf(after)
}

func requestFor(p policy.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: keyOf(p)}
}

// policyReconciler reconciles the policies of one scope.
type policyReconciler struct {
	detector *detector
	scope    policyScope
}

// Reconcile implements reconcile.Reconciler.
func (r *policyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := r.scope.newPolicy()
	if err := r.detector.karmada.Get(ctx, request.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() != nil {
		return requeueIfStale(r.finalize(ctx, p))
	}
	return requeueIfStale(errors.Join(r.detector.enqueueTemplatesOf(ctx, p), r.detector.preempt(ctx, p)))
}

// enqueueTemplatesOf queues every template that the policy claims or may select. The reconcile
// of a template releases it when the policy selects it no longer.
func (d *detector) enqueueTemplatesOf(ctx context.Context, p policy.Object) error {
	found, err := d.claimedTemplates(ctx, policy.ClaimOf(p))
	if err != nil {
		return err
	}
	for _, filter := range filtersOf(p) {
		found.Insert(d.waitingTemplates.matching(filter)...)
	}
	found.Insert(d.nearMisses(p, found)...)
	return d.enqueueTemplates(ctx, policy.PolicyChanged, found.UnsortedList()...)
}

// claimedTemplates returns the templates that carry the claim, or whose bindings carry it.
func (d *detector) claimedTemplates(ctx context.Context, claim policy.Claim) (sets.Set[templateRef], error) {
	if claim.ID == "" {
		return sets.New[templateRef](), nil
	}
	bound, err := d.templatesBoundBy(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sets.New(d.claims.templatesOf(claim.ID)...).Insert(bound...), nil
}

// finalize releases all templates that a deleted policy claims, and then removes the finalizer
// of the policy. Bindings and Works stay as they are. A template that is not in the cache yet
// is released later, because its policy does not exist then.
func (r *policyReconciler) finalize(ctx context.Context, p policy.Object) error {
	if !controllerutil.ContainsFinalizer(p, r.scope.finalizer) {
		return nil
	}
	claim := policy.ClaimOf(p)
	claimed, err := r.detector.claimedTemplates(ctx, claim)
	if err != nil {
		return err
	}
	var failures []error
	for ref := range claimed {
		failures = append(failures, r.detector.releaseTemplate(ctx, claim, ref))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	finalized, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	controllerutil.RemoveFinalizer(finalized, r.scope.finalizer)
	_, err = patch.Object(ctx, r.detector.karmada, p, finalized)
	return client.IgnoreNotFound(err)
}

// existsOnServer reports whether the policy of a claim exists although it is not in the
// catalog yet.
func (d *detector) existsOnServer(ctx context.Context, claim policy.Claim) (bool, error) {
	err := d.karmadaReader.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, newPolicyFor(claim))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading policy %s from the API server: %w", claim, err)
	}
	return err == nil, nil
}
