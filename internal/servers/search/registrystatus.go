package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/registries"
	"karmada.io/karmada/internal/loop/patch"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

const (
	// debounceTime is the time for which changes are collected for one write.
	debounceTime = time.Second
	// startPeriod is the time after the start in which kinds are listed for the first time. Until
	// then, the stored status is more useful than Waiting.
	startPeriod = time.Minute
	// smallCountsPeriod and largeCountsPeriod are the minimum times between two writes of counts that
	// differ little and much, for a status of up to smallStatus entries. For a larger status, the times
	// are proportionally longer, because each write contains all entries.
	smallCountsPeriod = time.Hour
	largeCountsPeriod = 10 * time.Second
	smallStatus       = 200
	// checkPeriod is the interval at which statuses are compared if no state changes.
	checkPeriod = 10 * time.Second
)

// cacheReporter reports what is cached. *objectcache.Cache implements it.
type cacheReporter interface {
	Report() []objectcache.SourceReport
	StatesChanged() <-chan struct{}
	Evaluated() <-chan struct{}
}

// registryStatusOptions configure a registryStatusWriter.
type registryStatusOptions struct {
	// Karmada reads ResourceRegistries from a cache of the control plane, and writes their status.
	Karmada client.Client
	Cache   cacheReporter
	// Problems returns what is wrong with a cluster's objects in its back end, or "". It is called for
	// registries with a back end. Nil means that there are no back ends.
	Problems func(cluster string) string
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// registryStatusWriter writes what is cached into the status of ResourceRegistries. Only one replica may run it.
//
// Invariants:
//   - A changed state is written within seconds. Changed counts alone are written rarely.
//   - A restart without changes writes nothing.
type registryStatusWriter struct {
	options registryStatusOptions
	started time.Time
	// written has the time when the counts of each registry were written or first observed.
	written map[string]time.Time
}

// newRegistryStatusWriter returns a registryStatusWriter.
func newRegistryStatusWriter(options registryStatusOptions) *registryStatusWriter {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &registryStatusWriter{options: options, started: options.Now(), written: map[string]time.Time{}}
}

// Run writes statuses until ctx ends.
func (w *registryStatusWriter) Run(ctx context.Context) {
	select {
	case <-w.options.Cache.Evaluated():
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		changed := w.options.Cache.StatesChanged()
		if err := w.Reconcile(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Writing the status of ResourceRegistries; retrying")
		}
		waitForChange(ctx, nil, debounceTime)
		waitForChange(ctx, changed, checkPeriod)
	}
}

func waitForChange(ctx context.Context, changed <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

// Reconcile compares the status of all registries once, and writes those that differ.
func (w *registryStatusWriter) Reconcile(ctx context.Context) error {
	stored := &searchv1alpha1.ResourceRegistryList{}
	if err := w.options.Karmada.List(ctx, stored); err != nil {
		return fmt.Errorf("listing ResourceRegistries: %w", err)
	}
	sources := sourcesByRegistry(w.options.Cache.Report())
	var failure error
	names := map[string]bool{}
	for i := range stored.Items {
		registry := &stored.Items[i]
		names[registry.Name] = true
		// A failed write must not delay the other registries.
		if err := w.write(ctx, registry, sources[registry.Name]); err != nil {
			failure = err
		}
	}
	for name := range w.written {
		if !names[name] {
			delete(w.written, name)
		}
	}
	return failure
}

// write writes the status of a registry if it differs enough.
func (w *registryStatusWriter) write(ctx context.Context, registry *searchv1alpha1.ResourceRegistry, sources []registries.Source) error {
	now := w.options.Now()
	problems := w.backendProblems(registry, sources)
	if now.Sub(w.started) < startPeriod {
		// Probably, nothing was sent to the back end yet.
		if len(problems) == 0 && isBackendFailing(registry) {
			return nil
		}
		if slices.ContainsFunc(sources, registries.Source.IsPending) && !slices.ContainsFunc(sources, registries.Source.HasProblem) {
			return nil
		}
		sources = registries.WithStored(registry.Status, sources)
	}
	if _, known := w.written[registry.Name]; !known {
		w.written[registry.Name] = now
	}
	next := registries.NextStatus(registry.Status, sources, registry.Generation, now)
	next = registries.WithBackendProblems(registry.Status, next, problems, now)
	sinceWritten := now.Sub(w.written[registry.Name])
	difference := registries.Compare(registry.Status, next)
	if difference == registries.Same || sinceWritten < writePeriod(difference, registries.Entries(next)) {
		return nil
	}
	after := registry.DeepCopy()
	after.Status = next
	if _, err := patch.Status(ctx, w.options.Karmada, registry, after); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			// The cached registry is outdated. The next pass compares again.
			return nil
		}
		return err
	}
	w.written[registry.Name] = now
	return nil
}

// writePeriod returns the minimum time between two writes of a status.
func writePeriod(difference registries.Difference, entries int) time.Duration {
	entries = max(entries, smallStatus)
	switch difference {
	case registries.SmallCounts:
		return smallCountsPeriod / smallStatus * time.Duration(entries)
	case registries.LargeCounts:
		return largeCountsPeriod / smallStatus * time.Duration(entries)
	}
	return 0
}

// backendProblems returns the problems of a registry's back end by cluster.
func (w *registryStatusWriter) backendProblems(registry *searchv1alpha1.ResourceRegistry, sources []registries.Source) map[string]string {
	backend := registry.Spec.BackendStore
	if w.options.Problems == nil || backend == nil || backend.OpenSearch == nil {
		return nil
	}
	problems := map[string]string{}
	for _, source := range sources {
		if _, known := problems[source.Cluster]; !known {
			problems[source.Cluster] = w.options.Problems(source.Cluster)
		}
	}
	maps.DeleteFunc(problems, func(_, problem string) bool { return problem == "" })
	return problems
}

// isBackendFailing reports whether the stored status says that the back end fails.
func isBackendFailing(registry *searchv1alpha1.ResourceRegistry) bool {
	stored := conditions.Get(registry.Status.Conditions, searchv1alpha1.RegistryConditionCached)
	return stored != nil && stored.Reason == searchv1alpha1.RegistryReasonBackendFailing
}

// sourcesByRegistry groups a report by the registries that select the sources.
func sourcesByRegistry(report []objectcache.SourceReport) map[string][]registries.Source {
	sources := map[string][]registries.Source{}
	for _, r := range report {
		source := registries.Source{Cluster: r.Cluster, RegistryKindStatus: searchv1alpha1.RegistryKindStatus{
			APIVersion: r.APIVersion, Kind: r.Kind, State: searchv1alpha1.RegistryKindState(r.State),
			Objects: int64(r.Objects), Bytes: r.Bytes, Message: r.Message,
		}}
		if !r.Since.IsZero() {
			source.Since = &metav1.Time{Time: r.Since}
		}
		for _, registry := range r.Registries {
			sources[registry] = append(sources[registry], source)
		}
	}
	return sources
}
