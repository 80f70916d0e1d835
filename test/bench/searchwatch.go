package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"karmada.io/karmada/test/bench/podmember"
)

const (
	// eventInterval is the interval between two changes of Pods.
	eventInterval = 10 * time.Millisecond
	// fanOutEvents is the number of events that all watches receive.
	fanOutEvents = 50
	// eventTimeout limits the time until an event arrives.
	eventTimeout = 30 * time.Second
)

// mergedWatch is an open watch of the Pods of all members.
type mergedWatch struct {
	body io.ReadCloser
	http *http.Client
}

// watchPods opens a watch with a connection of its own, as another client would. The watch begins at a
// resourceVersion.
func (c *searchClient) watchPods(ctx context.Context, version string) (*mergedWatch, error) {
	connection := newConnection(c.tls)
	body, err := c.open(ctx, connection, http.MethodGet, proxyPath+"/api/v1/pods", url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}, "timeoutSeconds": {"3600"},
	}, nil)
	if err != nil {
		return nil, err
	}
	return &mergedWatch{body: body, http: connection}, nil
}

// arrival is the time at which a watch delivered the event of a change.
type arrival struct {
	change int
	at     time.Time
}

// read sends the changes of Pods to arrivals until the watch ends or the context ends.
func (w *mergedWatch) read(ctx context.Context, arrivals chan<- arrival) error {
	lines := bufio.NewReaderSize(w.body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("reading a watch: %w", err)
		}
		number, ok := changeNumber(line)
		if !ok {
			continue
		}
		select {
		case arrivals <- arrival{number, time.Now()}:
		case <-ctx.Done():
			return nil
		}
	}
}

// changeNumber returns the number of the change in the event of a Pod. Bookmarks have none.
func changeNumber(event []byte) (int, bool) {
	_, rest, ok := bytes.Cut(event, []byte(`"`+podmember.ChangeAnnotation+`":"`))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(string(digits))
	return number, err == nil
}

// watches are open watches whose events go to one channel.
type watches struct {
	arrivals chan arrival
	// failed receives the error of the first watch that ended.
	failed  chan error
	cancel  context.CancelFunc
	readers sync.WaitGroup
}

// openWatches opens watches from the version of the last list.
func (s *searchRun) openWatches(ctx context.Context, count int) (*watches, error) {
	ctx, cancel := context.WithCancel(ctx)
	all := &watches{arrivals: make(chan arrival, count), failed: make(chan error, 1), cancel: cancel}
	for range count {
		watch, err := s.client.watchPods(ctx, s.version)
		if err != nil {
			all.close()
			return nil, err
		}
		all.readers.Go(func() {
			defer watch.http.CloseIdleConnections()
			defer watch.body.Close()
			select {
			case all.failed <- watch.read(ctx, all.arrivals):
			default:
			}
		})
	}
	return all, nil
}

func (w *watches) close() {
	w.cancel()
	w.readers.Wait()
}

var errNoEvent = errors.New("an event did not arrive")

// await waits until a number of watches have delivered a change. Arrivals of older changes are ignored.
// It returns the time of the last arrival.
func (w *watches) await(ctx context.Context, change, count int) (time.Time, error) {
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	last := time.Time{}
	for arrived := 0; arrived < count; {
		select {
		case a := <-w.arrivals:
			if a.change == change {
				arrived, last = arrived+1, a.at
			}
		case err := <-w.failed:
			return last, err
		case <-timeout.C:
			return last, fmt.Errorf("change %d, %d of %d watches after %s: %w", change, arrived, count, eventTimeout, errNoEvent)
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
	}
	return last, nil
}

// change changes a Pod of one of the members, in turn.
func (s *searchRun) change(number int) (at time.Time) {
	member := s.members[number%len(s.members)]
	at = time.Now()
	member.Change(number%(s.options.pods/s.options.members), int64(number))
	return at
}

// measureEvents measures the time from the change of a Pod in a member until the client of a merged
// watch has the event.
func (s *searchRun) measureEvents(ctx context.Context) error {
	open, err := s.openWatches(ctx, 1)
	if err != nil {
		return err
	}
	defer open.close()
	delays, err := s.delays(ctx, open, 1, 1, s.options.events)
	if err != nil {
		return err
	}
	s.addDelays("event of a member until the client of a merged watch has it", delays)
	return nil
}

// delays changes Pods one after another, and returns for each change the time until all watches have
// delivered it. The first change has the number first.
func (s *searchRun) delays(ctx context.Context, open *watches, watchCount, first, count int) ([]time.Duration, error) {
	var delays []time.Duration
	for number := first; number < first+count; number++ {
		sent := s.change(number)
		last, err := open.await(ctx, number, watchCount)
		if err != nil {
			return nil, err
		}
		delays = append(delays, last.Sub(sent))
		select {
		case <-time.After(eventInterval):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return delays, nil
}

func (s *searchRun) addDelays(quantity string, delays []time.Duration) {
	s.add(quantity+" (p50)", milliseconds(percentile(delays, 50)), "ms")
	s.add(quantity+" (p99)", milliseconds(percentile(delays, 99)), "ms")
	s.add(quantity+" (slowest)", milliseconds(percentile(delays, 100)), "ms")
}

// measureIdleWatches opens many watches, and measures their cost while nothing happens, and the time
// until all of them have an event.
func (s *searchRun) measureIdleWatches(ctx context.Context) error {
	listed, err := s.client.listPods(ctx, podmember.Namespace(0), url.Values{"resourceVersion": {"0"}})
	if err != nil {
		return err
	}
	s.version = listed.version
	open, err := s.openWatches(ctx, s.options.watches)
	if err != nil {
		return err
	}
	defer open.close()
	if err := poll(ctx, func() (bool, error) {
		values, err := s.client.metrics(ctx, openWatchesMetric)
		return int(values[openWatchesMetric]) == s.options.watches, err
	}); err != nil {
		return err
	}
	if err := s.waitForLateWrites(ctx); err != nil {
		return err
	}
	if err := s.measureQuiet(ctx, fmt.Sprintf("with %d watches", s.options.watches)); err != nil {
		return err
	}
	delays, err := s.delays(ctx, open, s.options.watches, s.options.events+1, fanOutEvents)
	if err != nil {
		return err
	}
	s.addDelays(fmt.Sprintf("event of a member until all of %d clients have it", s.options.watches), delays)
	return nil
}
