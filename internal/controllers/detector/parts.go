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
	"karmada.io/karmada/internal/controllers/detector/binder"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/triggers"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
)

// surroundings are the external systems of the detector.
type surroundings struct {
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

// parts contains the parts of the detector and connects them. Each part declares the dependencies
// that it needs, so only this file and the registration of the controllers use parts.
type parts struct {
	log logr.Logger

	queue        *templates.Queue
	watchedKinds *kinds.Watched
	policies     *catalog.Catalog
	claims       *claims.Index
	claimWrites  *claims.WriteTracker
	waiting      *waiting.Templates
	initial      *waiting.Initial
	// awaitingOverride contains the requests that wait for an override policy.
	awaitingOverride *waiting.Requests

	binder    *binder.Binder
	preemptor *claims.Preemptor
	releaser  *claims.Releaser
	lookup    *claims.Lookup

	startup            *triggers.Startup
	templateTriggers   *triggers.Templates
	policyTriggers     []*triggers.Policies
	ruleTriggers       *triggers.Rules
	templateReconciler *templateReconciler
	policyReconcilers  []*policyReconciler
}

func newParts(s surroundings, o Options) *parts {
	p := &parts{
		log: s.log, queue: templates.NewQueue(), watchedKinds: kinds.NewWatched(), policies: catalog.New(),
		claims: claims.NewIndex(), claimWrites: claims.NewWriteTracker(),
		waiting: waiting.NewTemplates(), initial: waiting.NewInitial(),
		awaitingOverride: waiting.NewRequests(),
	}
	p.addActions(s, o)
	p.addTriggers(s, o)
	p.addReconcilers(s, o)
	return p
}

// addActions creates the parts that write objects.
func (p *parts) addActions(s surroundings, o Options) {
	p.binder = &binder.Binder{
		Karmada: s.karmada, Templates: s.templateReader, Rules: s.rules, Events: s.events,
		Features: binder.Features{
			MultiplePodTemplates: o.MultiplePodTemplates, WorkloadAffinity: o.WorkloadAffinity,
			PriorityScheduling: o.PriorityScheduling, ResourceQuotaEstimate: o.ResourceQuotaEstimate,
		},
		Now: time.Now,
	}
	p.preemptor = &claims.Preemptor{
		Enabled: o.Preemption, Karmada: s.karmada, Templates: s.templateReader, Policy: p.policies.Get,
		Events: s.events, RecordPreemption: s.counters.recordPreemption,
	}
	p.releaser = &claims.Releaser{
		Karmada: s.karmada, Templates: s.templateReader, Bindings: p.binder, Policies: p.policies, Events: s.events,
	}
	p.lookup = &claims.Lookup{
		IsTemplate: p.isTemplate(o.Propagated.Namespaces), Policies: p.policies, FindBinding: p.binder.Find, RecordMatch: s.counters.recordMatch,
	}
}

// addTriggers creates the parts that queue templates and policies.
func (p *parts) addTriggers(s surroundings, o Options) {
	var policySyncs []*triggers.HandlerSync
	for _, scope := range catalog.Scopes() {
		sync := triggers.NewHandlerSync(scope.Plural)
		policySyncs = append(policySyncs, sync)
		p.policyTriggers = append(p.policyTriggers, &triggers.Policies{
			Scope: scope, Informers: s.cache, Catalog: p.policies, Queue: p.queue, TemplatesOf: p.claims.TemplatesOf,
			Preemption: o.Preemption, PriorityScheduling: o.PriorityScheduling, Sync: sync,
		})
	}
	p.startup = triggers.NewStartup(triggers.StartupConfig{
		Informers: s.cache, Queue: p.queue, Initial: p.initial, AwaitingOverride: p.awaitingOverride,
		Events: s.events, PolicySyncs: policySyncs,
	})
	p.ruleTriggers = &triggers.Rules{
		Rules: s.rules, Templates: s.templateReader, Watched: p.watchedKinds, IsSkipped: isSkipped(o.Propagated.Namespaces),
	}
	p.templateTriggers = &triggers.Templates{
		Manager: s.watches, Queue: p.queue, Watched: p.watchedKinds, IsSkipped: isSkipped(o.Propagated.Namespaces),
		Catalog: p.policies, Claims: p.claims, Writes: p.claimWrites, Waiting: p.waiting, Initial: p.initial, Log: s.log,
	}
}

// addReconcilers creates the reconcilers of templates and of each kind of policy.
func (p *parts) addReconcilers(s surroundings, o Options) {
	p.templateReconciler = &templateReconciler{
		isTemplate: p.isTemplate(o.Propagated.Namespaces), templates: s.templateReader, karmadaReader: s.karmadaReader,
		policies: p.policies, waiting: p.waiting, initial: p.initial, awaitingOverride: p.awaitingOverride,
		applier: &applier{
			karmada: s.karmada, binder: p.binder, claimer: &claims.Claimer{Karmada: s.karmada, Writes: p.claimWrites},
			waiting: p.waiting, awaitingOverride: p.awaitingOverride, events: s.events, recordApply: s.counters.recordApply,
		},
		releaser: p.releaser,
		noMatch: &noMatchReporter{
			binder: p.binder, policies: p.policies, waiting: p.waiting, addAfter: p.queue.AddAfter, events: s.events, grace: noMatchGrace,
		},
		events: s.events, recordMatch: s.counters.recordMatch,
	}
	for _, scope := range catalog.Scopes() {
		p.policyReconcilers = append(p.policyReconcilers, &policyReconciler{
			scope: scope, karmada: s.karmada, queue: p.queue, waiting: p.waiting, claims: p.claims,
			binder: p.binder, preemptor: p.preemptor, releaser: p.releaser,
		})
	}
}

// isTemplate returns a function that reports whether an object has a watched kind and may be
// propagated.
func (p *parts) isTemplate(skipped tenancy.SkippedNamespaces) func(templates.Ref) bool {
	skips := isSkipped(skipped)
	return func(r templates.Ref) bool { return p.watchedKinds.Has(r.Kind) && !skips(r) }
}

func isSkipped(skipped tenancy.SkippedNamespaces) func(templates.Ref) bool {
	return func(r templates.Ref) bool { return skipped.Skips(r.Kind, r.Key.Namespace, r.Key.Name) }
}

// publishClaimLookup publishes the claim lookup after all handlers are in sync, and withdraws it
// when the context ends.
func (p *parts) publishClaimLookup(publish func(ClaimLookup)) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := p.startup.WaitForSync(ctx); err != nil {
			return err
		}
		publish(p.lookup.Claim)
		<-ctx.Done()
		publish(nil)
		return nil
	}
}

// runDiscovery runs the discovery of kinds. It waits until the queue of templates is open, because
// the workers wait for every watch that exists at the start.
func (p *parts) runDiscovery(config kinds.Config) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if p.queue.WaitUntilOpen(ctx) == nil {
			kinds.NewDiscovery(config, p.watchedKinds, p.templateTriggers).Run(ctx)
		}
		return nil // the manager stops
	}
}
