package proxy

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
)

const mib = 1 << 20

// room is how much memory the answers of members to requests to all clusters may take
// in this server, in bytes.
type room struct {
	// lookup bounds what one member answers when one object is looked for, member what
	// one member answers to a list, request what all members answer to one request.
	lookup, member, request int64
	// perMember bounds what one member holds in all requests together, all what all
	// members hold. A part for each member keeps one from taking the room of all.
	perMember, all int64
	// wait is how long a request waits for room that others hold.
	wait time.Duration
}

// defaultRoom lets a member answer with some thousand Pods. etcd takes objects of
// 1.5 MiB at most.
var defaultRoom = room{lookup: 4 * mib, member: 32 * mib, request: 256 * mib, perMember: 128 * mib, all: 512 * mib, wait: 3 * time.Second}

// roomBlock is how many bytes of room are taken at once.
const roomBlock = 64 << 10

// errNoRoom ends a request to all clusters when other such requests hold all room.
var errNoRoom = errors.New("no room")

// noRoom is the error when the answers to other requests take all the room that there is.
func noRoom(limit int64) error {
	return soon(failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"requests to all clusters hold %d bytes of answers, which is the limit of this server: try again later, select less, or ask one cluster at clusters/NAME/proxy", limit))
}

// leftOutError says that the answer of one member takes more room than it may.
type leftOutError struct{ why string }

// Error implements error.
func (e *leftOutError) Error() string { return e.why }

func leftOut(format string, args ...any) error { return &leftOutError{fmt.Sprintf(format, args...)} }

// grant is the room that the answer of one member to one request takes.
type grant struct {
	cluster string
	room    room
	// limit is what this answer may take.
	limit int64
	// request is what all answers to the request may still take.
	request *atomic.Int64
	// member and all are what all requests share.
	member, all *semaphore.Weighted
	// used is what the answer takes, held what was taken for it from member and all.
	used, held int64
}

// take takes room for n more bytes. It waits for a limited time while others hold it.
// errNoRoom says that the whole request is to fail, any other error that the member is
// left out.
func (g *grant) take(ctx context.Context, n int64) error {
	if g.used+n > g.limit {
		return leftOut("cluster %q is left out: its answer takes more than %d bytes: select less, or ask it alone at clusters/%s/proxy", g.cluster, g.limit, g.cluster)
	}
	g.used += n
	if g.request.Add(-n) < 0 {
		return leftOut("cluster %q is left out: the clusters together answer with more than %d bytes: select less", g.cluster, g.room.request)
	}
	if g.used <= g.held {
		return nil
	}
	more := (g.used - g.held + roomBlock - 1) / roomBlock * roomBlock
	if !g.acquire(ctx, g.member, more) {
		return leftOut("cluster %q is left out: its answers to other requests take %d bytes: try again later, or select less", g.cluster, g.room.perMember)
	}
	if !g.acquire(ctx, g.all, more) {
		g.member.Release(more)
		return errNoRoom
	}
	g.held += more
	return nil
}

func (g *grant) acquire(ctx context.Context, from *semaphore.Weighted, n int64) bool {
	if from.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, g.room.wait)
	defer cancel()
	return from.Acquire(ctx, n) == nil
}

// release gives all room back. What is read afterwards takes room anew.
func (g *grant) release() {
	if g == nil {
		return
	}
	if g.held > 0 {
		g.member.Release(g.held)
		g.all.Release(g.held)
	}
	g.request.Add(g.used)
	g.used, g.held = 0, 0
}

// granted is a body that takes room as it is read.
type granted struct {
	io.Reader
	ctx   context.Context //nolint:containedctx // it is that of the request
	grant *grant
}

func (g granted) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if short := g.grant.take(g.ctx, int64(n)); short != nil {
		return 0, short
	}
	return n, err
}
