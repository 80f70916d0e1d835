package detector

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
)

// dependencies are the clients, caches and sinks that the detector uses.
type dependencies struct {
	// karmada reads from the cache. karmadaReader reads from the API server.
	karmada        client.Client
	karmadaReader  client.Reader
	cache          cache.Cache
	watches        *watches.Manager
	templateReader *template.Reader
	rules          interpreter.Source
	events         *loop.Events
	counters       *counters
	log            logr.Logger
}

// detector contains the components of the detector and connects them. Each component declares its
// own dependencies, so only this file and the registration of the controllers use this type.
type detector struct {
	log logr.Logger

	queue        *templateQueue
	watchedKinds *watchedKinds
	policies     *policyCatalog
	claims       *claimIndex
	claimWrites  *writeTracker
	waiting      *waitingTemplates
	initial      *oldTemplates
	// awaitingObject contains the requests that wait for an override policy, and those that a quota refused.
	awaitingObject *waitingRequests

	binder    *binder
	preemptor *preemptor
	releaser  *releaser
	lookup    *claimLookup

	startup            *startupSource
	templateTriggers   *templateSource
	policyTriggers     []*policySource
	ruleTriggers       *ruleSource
	templateReconciler *templateReconciler
	policyReconcilers  []*policyReconciler
}

func newDetector(s dependencies, o Options) *detector {
	d := &detector{
		log: s.log, queue: newTemplateQueue(), watchedKinds: newWatchedKinds(), policies: newPolicyCatalog(),
		claims: newClaimIndex(), claimWrites: newWriteTracker(),
		waiting: newWaitingTemplates(), initial: newOldTemplates(),
		awaitingObject: newWaitingRequests(),
	}
	d.addActions(s, o)
	d.addTriggers(s, o)
	d.addReconcilers(s, o)
	return d
}

// addActions creates the components that write objects.
func (d *detector) addActions(s dependencies, o Options) {
	d.binder = &binder{
		karmada: s.karmada, templates: s.templateReader, Rules: s.rules, events: s.events,
		features: bindingFeatures{
			multiplePodTemplates: o.MultiplePodTemplates, workloadAffinity: o.WorkloadAffinity,
			priorityScheduling: o.PriorityScheduling, resourceQuotaEstimate: o.ResourceQuotaEstimate,
		},
		placer: o.Placer, now: time.Now,
	}
	d.preemptor = &preemptor{
		enabled: o.Preemption, karmada: s.karmada, templates: s.templateReader, policy: d.policies.get,
		events: s.events, recordPreemption: s.counters.recordPreemption,
	}
	d.releaser = &releaser{
		karmada: s.karmada, templates: s.templateReader, bindings: d.binder, policies: d.policies, events: s.events,
	}
	d.lookup = &claimLookup{
		isTemplate: d.isTemplate(o.Propagated.Namespaces), policies: d.policies, findBinding: d.binder.findBinding,
		recordMatch: s.counters.recordMatch,
	}
}

// addTriggers creates the sources that queue templates and policies.
func (d *detector) addTriggers(s dependencies, o Options) {
	var policySyncs []*handlerSync
	for _, scope := range policyScopes() {
		sync := newHandlerSync(scope.plural)
		policySyncs = append(policySyncs, sync)
		d.policyTriggers = append(d.policyTriggers, &policySource{
			scope: scope, informers: s.cache, catalog: d.policies, queue: d.queue, templatesOf: d.claims.templatesOf,
			preemption: o.Preemption, priorityScheduling: o.PriorityScheduling, sync: sync,
		})
	}
	d.startup = newStartupSource(startupConfig{
		informers: s.cache, queue: d.queue, initial: d.initial, awaitingObject: d.awaitingObject,
		events: s.events, policySyncs: policySyncs,
	})
	d.ruleTriggers = &ruleSource{
		Rules: s.rules, templates: s.templateReader, watched: d.watchedKinds, isSkipped: isSkipped(o.Propagated.Namespaces),
	}
	d.templateTriggers = &templateSource{
		manager: s.watches, queue: d.queue, watched: d.watchedKinds, isSkipped: isSkipped(o.Propagated.Namespaces),
		catalog: d.policies, claims: d.claims, writes: d.claimWrites, waiting: d.waiting, initial: d.initial,
		awaitingObject: d.awaitingObject, log: s.log,
	}
}

// addReconcilers creates the reconcilers of templates and of each kind of policy.
func (d *detector) addReconcilers(s dependencies, o Options) {
	d.templateReconciler = &templateReconciler{
		isTemplate: d.isTemplate(o.Propagated.Namespaces), templates: s.templateReader, karmadaReader: s.karmadaReader,
		policies: d.policies, waiting: d.waiting, initial: d.initial, awaitingObject: d.awaitingObject,
		applier: &applier{
			karmada: s.karmada, binder: d.binder, claimer: &claimer{karmada: s.karmada, writes: d.claimWrites},
			waiting: d.waiting, awaitingObject: d.awaitingObject, events: s.events, recordApply: s.counters.recordApply,
		},
		releaser: d.releaser,
		noMatch: &noMatchReporter{
			binder: d.binder, policies: d.policies, waiting: d.waiting, addAfter: d.queue.addAfter, events: s.events, grace: noMatchGrace,
		},
		events: s.events, recordMatch: s.counters.recordMatch,
	}
	for _, scope := range policyScopes() {
		d.policyReconcilers = append(d.policyReconcilers, &policyReconciler{
			scope: scope, karmada: s.karmada, queue: d.queue, waiting: d.waiting, claims: d.claims,
			binder: d.binder, preemptor: d.preemptor, releaser: d.releaser,
		})
	}
}

// isTemplate returns a function that reports whether an object has a watched kind and may be
// propagated.
func (d *detector) isTemplate(skipped tenancy.SkippedNamespaces) func(templateRef) bool {
	skips := isSkipped(skipped)
	return func(r templateRef) bool { return d.watchedKinds.Has(r.Kind) && !skips(r) }
}

func isSkipped(skipped tenancy.SkippedNamespaces) func(templateRef) bool {
	return func(r templateRef) bool { return skipped.Skips(r.Kind, r.Key.Namespace, r.Key.Name) }
}

// publishClaimLookup publishes the claim lookup after all handlers are in sync, and removes it
// when the context ends.
func (d *detector) publishClaimLookup(publish func(ClaimLookup)) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := d.startup.WaitForSync(ctx); err != nil {
			return err
		}
		publish(d.lookup.claim)
		<-ctx.Done()
		publish(nil)
		return nil
	}
}

// runDiscovery runs the discovery of kinds. It waits until the queue of templates is open, because
// the workers wait for every watch that exists at the start.
func (d *detector) runDiscovery(config kindDiscoveryConfig) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if d.queue.waitUntilOpen(ctx) == nil {
			newKindDiscovery(config, d.watchedKinds, d.templateTriggers).Run(ctx)
		}
		return nil // the manager stops
	}
}
