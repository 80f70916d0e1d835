package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Hurry makes a proxy lose its patience after so long.
func (p *Proxy) Hurry(silence time.Duration) {
	p.limits = limits{silence: silence, refusal: silence, linger: silence, lookup: silence, answer: 3 * silence, delivery: silence}
}

// HurryLookups makes a proxy ask all clusters for so long.
func (p *Proxy) HurryLookups(lookup time.Duration) {
	p.limits.lookup, p.limits.answer = lookup, 3*lookup
}

// HurryRefusals lets a member say for so long why it refuses an upgrade.
func (p *Proxy) HurryRefusals(refusal time.Duration) { p.limits.refusal = refusal }

// Room is how much memory answers to requests to all clusters may take, in bytes.
type Room struct{ Lookup, Member, Request, PerMember, All int64 }

// Provide makes the proxy do with so much room, where it is not 0.
func (p *Proxy) Provide(given Room, wait time.Duration) {
	room := defaultRoom
	room.wait = wait
	for bound, bytes := range map[*int64]int64{
		&room.lookup: given.Lookup, &room.member: given.Member, &room.request: given.Request, &room.perMember: given.PerMember, &room.all: given.All,
	} {
		if bytes != 0 {
			*bound = bytes
		}
	}
	p.provide(room)
}

// RoomLeft reports whether nothing is held of the room of all.
func (p *Proxy) RoomLeft() bool {
	if !p.answers.TryAcquire(p.room.all) {
		return false
	}
	p.answers.Release(p.room.all)
	return true
}

// Names of what tests look at.
var (
	Strip     = strip
	CheckPath = checkPath
)

// MaxUpgrades is how many streams to a member there may be.
const MaxUpgrades = maxUpgrades

// Send sends a request to a member over a transport.
func (p *Proxy) Send(cluster *clusterv1alpha1.Cluster, transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	way, err := p.way(req.Context(), cluster, &user.DefaultInfo{})
	if err != nil {
		return nil, err
	}
	return way.send(transport, req, way.info(req))
}

// Whole is the body of the answer to a request.
func Whole(request context.Context, body io.ReadCloser) io.ReadCloser { return whole{body, request} }

// ErrSilent is why a request to a silent member ends.
var ErrSilent = errSilent

// Below is where a request goes.
func Below(endpoint *url.URL, path string, request *url.URL) *url.URL {
	return below(endpoint, path, request)
}

// Occupy takes places for streams to a cluster, and tells how to leave them.
func (p *Proxy) Occupy(ctx context.Context, cluster *clusterv1alpha1.Cluster, places int) (release func()) {
	way, err := p.way(ctx, cluster, &user.DefaultInfo{})
	if err != nil {
		panic(err)
	}
	for range places {
		way.member.upgrades <- struct{}{}
	}
	return func() {
		for range places {
			<-way.member.upgrades
		}
	}
}

// MergeLists makes one list of two. It reports whether any could be read.
func MergeLists(one, two []byte) ([]byte, bool) {
	var merged list
	free := func(int64) error { return nil }
	first, second := merged.add("m1", one, free), merged.add("m2", two, free)
	var body bytes.Buffer
	err := merged.write(&body)
	return body.Bytes(), err == nil && (first == nil || second == nil)
}

// Width counts the elements or fields of a text.
var Width = width
