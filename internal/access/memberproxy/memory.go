package memberproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/access/fanout"
)

const mib = 1 << 20

// memoryLimits limit the memory for members' responses to requests that are sent to all clusters, in
// bytes.
type memoryLimits struct {
	// lookup limits one member's response if one object is requested, and member limits it if a list is
	// requested. request limits all members' responses to one request.
	lookup, member, request int64
	// perMember limits one member's responses to all concurrent requests, so that one member cannot use
	// all memory. all limits all members' responses to all concurrent requests.
	perMember, all int64
	// wait is how long a request waits for memory that other requests use.
	wait time.Duration
}

// defaultMemoryLimits allow responses with several thousand Pods. The largest object in etcd has
// 1.5 MiB.
var defaultMemoryLimits = memoryLimits{lookup: 4 * mib, member: 32 * mib, request: 256 * mib, perMember: 128 * mib, all: 512 * mib,
	wait: 3 * time.Second}

// errMemoryExhausted means that other requests to all clusters use all memory.
var errMemoryExhausted = errors.New("no memory left")

// newMemoryExhaustedError returns the error for a request that gets no memory within the given limit.
func newMemoryExhaustedError(limit int64) error {
	return fanout.WithRetryAfter(fanout.NewStatusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"requests to all clusters hold %d bytes of responses, which is the limit of this server: try again later, select fewer objects, or use clusters/NAME/proxy for one cluster", limit))
}

// memoryPool is memory that several responses share.
type memoryPool struct {
	*semaphore.Weighted
	// wait is how long a response waits for memory that other responses use.
	wait time.Duration
	// exceeded is the error for a response for which the pool has no memory.
	exceeded error
}

func (p memoryPool) acquire(ctx context.Context, n int64) bool {
	if p.TryAcquire(n) {
		return true
	}
	if p.wait == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	return p.Acquire(ctx, n) == nil
}

// memoryReservation is the memory that is reserved for one member's response to one request.
type memoryReservation struct {
	pools []memoryPool
	held  int64
}

// reserve reserves n more bytes in all pools, or returns the error of the first pool that has too
// little memory.
func (m *memoryReservation) reserve(ctx context.Context, n int64) error {
	for i, pool := range m.pools {
		if !pool.acquire(ctx, n) {
			for _, acquired := range m.pools[:i] {
				acquired.Release(n)
			}
			return pool.exceeded
		}
	}
	m.held += n
	return nil
}

func (m *memoryReservation) release() {
	for _, pool := range m.pools {
		pool.Release(m.held)
	}
	m.held = 0
}

// newReservation returns the reservation for one member's response. maxBytes limits the response, and
// request is the memory for all responses to the request.
func (p *Proxy) newReservation(c *client, maxBytes int64, request *semaphore.Weighted) memoryReservation {
	limits := p.memory
	return memoryReservation{pools: []memoryPool{
		{semaphore.NewWeighted(maxBytes), 0, fmt.Errorf(
			"its response exceeds %d bytes: select fewer objects, or use clusters/%s/proxy", maxBytes, c.cluster.Name)},
		{request, 0, fmt.Errorf("the responses of all clusters exceed %d bytes: select fewer objects", limits.request)},
		{c.member.responseMemory, limits.wait, fmt.Errorf(
			"its responses to other requests take %d bytes: try again later, or select fewer objects", limits.perMember)},
		{p.responseMemory, limits.wait, errMemoryExhausted},
	}}
}

// reservingReader reserves memory while the body is read.
type reservingReader struct {
	io.Reader
	ctx         context.Context //nolint:containedctx // the context of the request
	reservation *memoryReservation
	// err is the error that reserving memory returned.
	err error
}

func (r *reservingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.err = r.reservation.reserve(r.ctx, int64(n)); r.err != nil {
		return 0, r.err
	}
	return n, err
}
