package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"karmada.io/karmada/test/bench/podmember"
)

const searchScenario = "search"

const (
	// searchRepeats is the number of times that each list is read, and queryRepeats that of each query.
	searchRepeats, queryRepeats = 5, 20
	// searchPage is the page size of kubectl, and the first page of a query.
	searchPage = 500
	// searchPollInterval is the interval at which the metrics are read while objects are cached.
	searchPollInterval = 500 * time.Millisecond
)

// search measures karmada-search alone, as a separate program, with members in the memory of this
// program. Its API is used directly, without the aggregation of the API server.
func (b *bench) search(ctx context.Context) (err error) {
	s := &searchRun{bench: b, options: b.options.search}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		err = errors.Join(err, s.cleanUp(cleanup))
	}()
	for _, step := range []func(context.Context) error{
		b.fleet.createNamespace, s.registerMembers, s.start,
		s.measureCaching, s.measureLists, s.measureEvents, s.measureQueries, s.measureIdleWatches,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// searchRun is one run of the scenario.
type searchRun struct {
	*bench
	options searchOptions
	members []*podmember.Member
	program *program
	client  *searchClient
	memory  *memorySampler
	// version is the resourceVersion of the cached Pods.
	version string
}

func (s *searchRun) add(quantity string, value float64, unit string) {
	s.report.add(searchScenario, quantity, value, unit)
}

// start starts karmada-search and waits until it is ready. Nothing is selected yet.
func (s *searchRun) start(ctx context.Context) (err error) {
	if s.client, err = newSearchClient(s.bench.options, s.options.server); err != nil {
		return err
	}
	if s.program, err = startProgram("karmada-search", s.options.command); err != nil {
		return err
	}
	s.memory = startMemorySampler(s.program.command.Process.Pid)
	return poll(ctx, func() (bool, error) {
		select {
		case <-s.program.ended:
			return false, s.program.errEnded()
		default:
		}
		_, err := s.client.get(ctx, "/readyz", nil)
		return err == nil, nil // the server does not listen yet
	})
}

// measureCaching selects the Pods, and waits until all of them are cached and indexed.
func (s *searchRun) measureCaching(ctx context.Context) error {
	before, err := s.program.usage()
	if err != nil {
		return err
	}
	s.addMemory("with an empty cache", s.memory.now())
	s.memory.restart()
	start := time.Now()
	if err := s.createRegistry(ctx); err != nil {
		return err
	}
	cached, err := s.awaitIndex(ctx)
	if err != nil {
		return err
	}
	indexed := time.Now()
	after, err := s.program.usage()
	if err != nil {
		return err
	}
	s.report.addRate(searchScenario, "until all Pods are cached", cached.Sub(start), s.options.pods, "Pods/s")
	s.report.addRate(searchScenario, "until all Pods are cached and indexed", indexed.Sub(start), s.options.pods, "Pods/s")
	s.add("CPU for it, per 1000 Pods", milliseconds(after.cpu-before.cpu)/float64(s.options.pods)*1000, "ms")
	s.addMemory("peak while caching", s.memory.peak())
	return s.measureQuiet(ctx, "without watches")
}

// measureQuiet measures CPU time and memory during a period without changes.
func (s *searchRun) measureQuiet(ctx context.Context, condition string) error {
	before, err := s.program.usage()
	if err != nil {
		return err
	}
	start := time.Now()
	select {
	case <-time.After(s.options.quiet):
	case <-s.program.ended:
		return s.program.errEnded()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	after, err := s.program.usage()
	if err != nil {
		return err
	}
	s.add("CPU "+condition+", nothing happens", 100*(after.cpu-before.cpu).Seconds()/time.Since(start).Seconds(), "% of one core")
	s.addMemory(condition+", nothing happens", s.memory.now())
	return nil
}

// The metrics that show when all Pods are cached and indexed.
const (
	cachedObjectsMetric = "karmada_search_cached_objects"
	indexLagMetric      = "karmada_search_index_lag_seconds"
	openWatchesMetric   = "karmada_search_proxy_watches"
)

// awaitIndex waits until all Pods are cached and indexed. It returns the time at which they were cached,
// within searchPollInterval.
func (s *searchRun) awaitIndex(ctx context.Context) (cached time.Time, err error) {
	ticker := time.NewTicker(searchPollInterval)
	defer ticker.Stop()
	for {
		values, err := s.client.metrics(ctx, cachedObjectsMetric, indexLagMetric)
		if err != nil {
			return cached, err
		}
		if int(values[cachedObjectsMetric]) >= s.options.pods {
			if cached.IsZero() {
				cached = time.Now()
			}
			if values[indexLagMetric] == 0 {
				return cached, nil
			}
		}
		select {
		case <-ticker.C:
		case <-s.program.ended:
			return cached, s.program.errEnded()
		case <-ctx.Done():
			return cached, fmt.Errorf("%.0f of %d Pods are cached, the index is %.0f s behind: %w",
				values[cachedObjectsMetric], s.options.pods, values[indexLagMetric], context.Cause(ctx))
		}
	}
}

// measureLists lists one namespace through the global proxy.
func (s *searchRun) measureLists(ctx context.Context) error {
	for _, list := range []struct {
		name  string
		query url.Values
	}{
		{fmt.Sprintf("live, in pages of %d", searchPage), url.Values{"limit": {strconv.Itoa(searchPage)}}},
		{"live, without a limit", url.Values{}},
		{"from the cache", url.Values{"resourceVersion": {"0"}}},
	} {
		quantity := fmt.Sprintf("list of %d Pods, %s", s.options.listed, list.name)
		s.memory.restart()
		before := s.memory.now()
		var times []time.Duration
		for range searchRepeats {
			listed, err := s.client.listPods(ctx, podmember.Namespace(0), list.query)
			if err != nil {
				return fmt.Errorf("%s: %w", quantity, err)
			}
			if listed.count != s.options.listed {
				return fmt.Errorf("%s: %w: %d Pods", quantity, errUnexpectedResponse, listed.count)
			}
			times = append(times, listed.took)
			s.version = listed.version
		}
		s.add(quantity+" (p50)", percentile(times, 50).Seconds(), "s")
		s.add(quantity+" (slowest)", percentile(times, 100).Seconds(), "s")
		s.add(quantity+": memory above that before it", mebibytes(s.memory.peak().resident-before.resident), "MiB")
	}
	return nil
}

// measureQueries searches for a word of few Pods, and for a word of all.
func (s *searchRun) measureQueries(ctx context.Context) error {
	for _, search := range []struct {
		name, word string
		want       int
	}{
		{"a rare word", podmember.RareWord, rarePods(s.options.pods)},
		{"a word of all Pods", podmember.CommonWord, min(searchPage, s.options.pods)},
	} {
		var times []time.Duration
		for range queryRepeats {
			found, took, err := s.client.search(ctx, search.word, searchPage)
			if err != nil {
				return fmt.Errorf("searching %s: %w", search.name, err)
			}
			if found != search.want {
				return fmt.Errorf("searching %s: %w: %d Pods, not %d", search.name, errUnexpectedResponse, found, search.want)
			}
			times = append(times, took)
		}
		s.add("search of "+search.name+", first page (p50)", milliseconds(percentile(times, 50)), "ms")
		s.add("search of "+search.name+", first page (slowest)", milliseconds(percentile(times, 100)), "ms")
	}
	return nil
}

// rarePods returns the number of Pods that have the rare word.
func rarePods(pods int) int { return (pods + podmember.RareInterval - 1) / podmember.RareInterval }

// addMemory reports the resident memory, and its parts.
func (s *searchRun) addMemory(condition string, m memory) {
	s.add("memory, "+condition, mebibytes(m.resident), "MiB")
	s.add("memory, "+condition+": RssAnon", mebibytes(m.anonymous), "MiB")
	s.add("memory, "+condition+": RssFile", mebibytes(m.file), "MiB")
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
