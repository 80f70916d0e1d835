package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/access/memberproxy"
)

// permissions decides which objects of a member a caller may read.
type permissions interface {
	// Allowed reports whether the caller may use the verb on a resource in a cluster. An empty namespace
	// means all namespaces. An empty name means all names. A subresource follows the resource, as in
	// pods/log. An error means that the member does not respond and that its last decision is too old.
	Allowed(ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string) (bool,
		error)
}

// allPermissions allows everything. It is used if permissions for the API of search are sufficient.
type allPermissions struct{}

// Allowed returns true.
func (allPermissions) Allowed(context.Context, user.Info, string, string, schema.GroupVersionResource, string, string) (bool, error) {
	return true, nil
}

const (
	// decisionAge is the time for which a decision is used without another review.
	decisionAge = 10 * time.Second
	// outageAge is the time for which the last decision is used while the member does not respond. The
	// objects that it protects are as old as the outage.
	outageAge = time.Hour
	// retryAge is the time for which a member that did not respond gets no further review.
	retryAge = 10 * time.Second
	// reviewTimeout limits one review.
	reviewTimeout = 3 * time.Second
	// maxDecisions is the maximum number of decisions in memory.
	maxDecisions = 32 << 10
	// maxReviewBytes limits the response of a member.
	maxReviewBytes = 256 << 10
)

// reviewPath is the path of the caller's SelfSubjectAccessReviews.
const reviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// sender sends a request to a cluster on behalf of a caller.
type sender interface {
	Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error)
}

// memberPermissions are the permissions of callers in members. The control plane impersonates the caller
// and creates a SelfSubjectAccessReview in the member.
//
// Invariants:
//   - Without a recent decision of the member, nothing is allowed. A member that forbids the review, or
//     that forbids impersonation of the caller, denies.
//   - A member that does not respond delays only requests for its own objects.
type memberPermissions struct {
	members   sender
	now       func() time.Time
	decisions *utilcache.LRUExpireCache
	inFlight  singleflight.Group
}

// decision is a member's decision, or the error of the last review.
type decision struct {
	isAllowed bool
	// decidedAt is the time of the decision. It is zero if there is none.
	decidedAt time.Time
	// err is the error of a later review, at failedAt.
	err      error
	failedAt time.Time
}

func newMemberPermissions(members sender, now func() time.Time) *memberPermissions {
	return &memberPermissions{members: members, now: now, decisions: utilcache.NewLRUExpireCacheWithClock(maxDecisions, clock(now))}
}

// clock is the clock of the cache.
type clock func() time.Time

// Now implements the interface of the cache.
func (c clock) Now() time.Time { return c() }

// Allowed implements permissions.
func (p *memberPermissions) Allowed(
	ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string,
) (bool, error) {
	plural, subresource, _ := strings.Cut(resource.Resource, "/")
	attributes := authorizationv1.ResourceAttributes{
		Verb: verb, Group: resource.Group, Version: resource.Version, Resource: plural, Subresource: subresource, Namespace: namespace,
		Name: name,
	}
	key := decisionKey(caller, cluster, attributes)
	last := p.lastDecision(key)
	switch now := p.now(); {
	case now.Sub(last.decidedAt) < decisionAge:
		return last.isAllowed, nil
	case now.Sub(last.failedAt) < retryAge:
		return last.at(now)
	}
	// The review serves other requests too, so it must not end with this request.
	reviewed := p.inFlight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return p.review(ctx, key, caller, cluster, attributes), nil
	})
	select {
	case result := <-reviewed:
		return result.Val.(decision).at(p.now())
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// at returns the decision at a time when there is no newer one.
func (d decision) at(now time.Time) (bool, error) {
	if d.err != nil && (d.decidedAt.IsZero() || now.Sub(d.decidedAt) > outageAge) {
		return false, d.err
	}
	return d.isAllowed, nil
}

func (p *memberPermissions) lastDecision(key string) decision {
	stored, _ := p.decisions.Get(key)
	last, _ := stored.(decision)
	return last
}

// review asks the member and stores the decision.
func (p *memberPermissions) review(ctx context.Context, key string, caller user.Info, cluster string,
	attributes authorizationv1.ResourceAttributes) decision {
	reviewed := p.lastDecision(key)
	isAllowed, err := p.send(ctx, caller, cluster, attributes)
	if err != nil {
		reviewed.err, reviewed.failedAt = fmt.Errorf("reviewing the permissions of user %q in cluster %q: %w", caller.GetName(), cluster, err),
			p.now()
	} else {
		reviewed = decision{isAllowed: isAllowed, decidedAt: p.now()}
	}
	p.decisions.Add(key, reviewed, outageAge)
	return reviewed
}

// send reports whether the member allows the request. An error means that there is no decision.
func (p *memberPermissions) send(ctx context.Context, caller user.Info, cluster string,
	attributes authorizationv1.ResourceAttributes) (bool, error) {
	body, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	})
	if err != nil {
		return false, err
	}
	response, err := p.members.Do(ctx, cluster, caller, memberproxy.Request{
		Method: http.MethodPost, Path: reviewPath, Body: body, Idle: reviewTimeout,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	})
	// memberproxy returns a Forbidden error if the member does not let the control plane impersonate the
	// caller. Such a caller has no permissions in the member.
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusForbidden {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReviewBytes))
	if err != nil {
		return false, fmt.Errorf("reading the response: %w", err)
	}
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the cluster returns %s: %s", response.Status, statusMessage(text))
	}
	review := authorizationv1.SelfSubjectAccessReview{}
	if err := json.Unmarshal(text, &review); err != nil {
		return false, fmt.Errorf("decoding the response: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// statusMessage returns the message of a Status, or the start of another response.
func statusMessage(text []byte) string {
	status := metav1.Status{}
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(bytes.ToValidUTF8(text[:min(len(text), 256)], nil))
}

// decisionKey contains everything on which a decision depends. It quotes the names of users and groups,
// which may contain any character.
func decisionKey(caller user.Info, cluster string, a authorizationv1.ResourceAttributes) string {
	groups := slices.Sorted(slices.Values(caller.GetGroups()))
	return fmt.Sprintf("%q %q %s", caller.GetName(), groups, strings.Join([]string{
		cluster, a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name,
	}, "\x00"))
}
