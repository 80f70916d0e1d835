package memberproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/access/fanout"
)

const mib = 1 << 20

// memoryLimits limit the memory, in bytes, for the responses of members to requests that are sent
// to all clusters.
type memoryLimits struct {
	// lookup limits the response of one member to the lookup of one object. member limits the
	// response of one member to a list. request limits the responses of all members to one request.
	lookup, member, request int64
	// perMember limits the memory for the responses of one member to all requests together. all
	// limits the memory for the responses of all members. perMember prevents one member from using
	// all memory.
	perMember, all int64
	// wait is how long a request waits for memory that other requests use.
	wait time.Duration
}

// defaultMemoryLimits allow responses with some thousand Pods. The largest object in etcd has 1.5
// MiB.
var defaultMemoryLimits = memoryLimits{lookup: 4 * mib, member: 32 * mib, request: 256 * mib, perMember: 128 * mib, all: 512 * mib, wait: 3 * time.Second}

// reservationBlock is the number of bytes that are reserved at once.
const reservationBlock = 64 << 10

// errMemoryExhausted is the cause of a failed request to all clusters: other such requests use all
// memory.
var errMemoryExhausted = errors.New("no memory left")

// memoryExhausted returns the error for a request that gets no memory.
func memoryExhausted(limit int64) error {
	return fanout.WithRetryAfter(fanout.NewStatusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"requests to all clusters hold %d bytes of responses, which is the limit of this server: try again later, select fewer objects, or use clusters/NAME/proxy for one cluster", limit))
}

// memoryReservation is the memory that is reserved for the response of one member to one
// request.
type memoryReservation struct {
	cluster string
	limits  memoryLimits
	// limit is the maximum memory for this response.
	limit int64
	// request is the remaining memory for all responses to the request.
	request *atomic.Int64
	// member limits the memory for the responses of this member to all requests. all limits the
	// memory for the responses of all members.
	member, all *semaphore.Weighted
	// used is the size of the response. held is the memory reserved in member and all.
	used, held int64
}

// reserve reserves memory for n more bytes. It waits for a limited time while other requests use
// the memory. If it returns errMemoryExhausted, the whole request must fail. If it returns another
// error, only the response of this member is omitted.
func (m *memoryReservation) reserve(ctx context.Context, n int64) error {
	if m.used+n > m.limit {
		return fmt.Errorf("its response exceeds %d bytes: select fewer objects, or use clusters/%s/proxy", m.limit, m.cluster)
	}
	m.used += n
	if m.request.Add(-n) < 0 {
		return fmt.Errorf("the responses of all clusters exceed %d bytes: select fewer objects", m.limits.request)
	}
	if m.used <= m.held {
		return nil
	}
	more := (m.used - m.held + reservationBlock - 1) / reservationBlock * reservationBlock
	if !m.acquire(ctx, m.member, more) {
		return fmt.Errorf("its responses to other requests take %d bytes: try again later, or select fewer objects", m.limits.perMember)
	}
	if !m.acquire(ctx, m.all, more) {
		m.member.Release(more)
		return errMemoryExhausted
	}
	m.held += more
	return nil
}

func (m *memoryReservation) acquire(ctx context.Context, limit *semaphore.Weighted, n int64) bool {
	if limit.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, m.limits.wait)
	defer cancel()
	return limit.Acquire(ctx, n) == nil
}

// release releases all memory. Later reads reserve memory again.
func (m *memoryReservation) release() {
	if m == nil {
		return
	}
	if m.held > 0 {
		m.member.Release(m.held)
		m.all.Release(m.held)
	}
	m.request.Add(m.used)
	m.used, m.held = 0, 0
}

// reservingReader reserves memory while the body is read.
type reservingReader struct {
	io.Reader
	ctx         context.Context //nolint:containedctx // the context of the request
	reservation *memoryReservation
	// err is the error of the reservation.
	err error
}

func (r *reservingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.err = r.reservation.reserve(r.ctx, int64(n)); r.err != nil {
		return 0, r.err
	}
	return n, err
}
