// Package callerrights answers: which objects of a member may a caller read?
//
// The member itself answers, as it authorizes requests of the caller: the control plane
// impersonates the caller and asks for a review.
//
// Invariants:
//   - Without an answer of the member nothing is allowed, except what the member allowed or
//     denied a short time ago. If the member forbids the review, or forbids to impersonate the caller,
//     this is an answer: it denies.
//   - A member that does not answer delays only requests for its own objects.
package callerrights

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

const (
	// decisionAge is how long a decision is used without another review.
	decisionAge = 10 * time.Second
	// outageAge is how long the last decision is used while the member does not answer. The objects
	// that it protects are as old as the outage.
	outageAge = time.Hour
	// retryAge is how long a member that did not answer is not asked again.
	retryAge = 10 * time.Second
	// reviewTimeout limits one review.
	reviewTimeout = 3 * time.Second
	// maxDecisions limits the number of decisions in memory.
	maxDecisions = 32 << 10
	// maxResponse limits the response of a member, in bytes.
	maxResponse = 256 << 10
)

// reviewPath is the path of reviews of the rights of the caller.
const reviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// Sender sends a request of a caller to a cluster.
type Sender interface {
	Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error)
}

// Reviewer asks members for the rights of callers, and remembers their answers for a short time.
type Reviewer struct {
	members   Sender
	now       func() time.Time
	decisions *utilcache.LRUExpireCache
	inFlight  singleflight.Group
}

// decision is the answer of a member, or the error of the last review.
type decision struct {
	isAllowed bool
	// decidedAt is the time of the answer. It is zero if the member never answered.
	decidedAt time.Time
	// err is the error of a review at failedAt, after the answer.
	err      error
	failedAt time.Time
}

// New returns a Reviewer that sends its reviews with members.
func New(members Sender, now func() time.Time) *Reviewer {
	return &Reviewer{members: members, now: now, decisions: utilcache.NewLRUExpireCacheWithClock(maxDecisions, clock(now))}
}

// clock is the clock of the cache.
type clock func() time.Time

// Now implements the interface of the cache.
func (c clock) Now() time.Time { return c() }

// Allowed reports whether the caller may use verb on the objects of a resource in a cluster. An
// empty namespace means all namespaces. An empty name means all names. The name of a subresource
// follows that of the resource, as in pods/log. An error means that the member does not answer and
// that its last answer is too old.
func (r *Reviewer) Allowed(ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	plural, subresource, _ := strings.Cut(resource.Resource, "/")
	return r.review(ctx, caller, cluster, authorizationv1.ResourceAttributes{
		Verb: verb, Group: resource.Group, Version: resource.Version, Resource: plural, Subresource: subresource, Namespace: namespace, Name: name,
	})
}

// review reports whether the member allows the caller what the attributes describe.
func (r *Reviewer) review(ctx context.Context, caller user.Info, cluster string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	key := decisionKey(caller, cluster, attributes)
	last := r.lastDecision(key)
	switch now := r.now(); {
	case now.Sub(last.decidedAt) < decisionAge:
		return last.isAllowed, nil
	case now.Sub(last.failedAt) < retryAge:
		return last.during(now)
	}
	// The context of one request must not cancel the review for other requests.
	reviewed := r.inFlight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return r.ask(ctx, key, caller, cluster, attributes), nil
	})
	select {
	case result := <-reviewed:
		answer, ok := result.Val.(decision)
		if !ok {
			return false, fmt.Errorf("reviewing the rights of user %q in cluster %q: unexpected result", caller.GetName(), cluster)
		}
		return answer.during(r.now())
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// during returns the decision at a time at which there is no newer one.
func (d decision) during(now time.Time) (bool, error) {
	if d.err != nil && (d.decidedAt.IsZero() || now.Sub(d.decidedAt) > outageAge) {
		return false, d.err
	}
	return d.isAllowed, nil
}

func (r *Reviewer) lastDecision(key string) decision {
	if known, ok := r.decisions.Get(key); ok {
		if last, ok := known.(decision); ok {
			return last
		}
	}
	return decision{}
}

// ask asks the member and stores the decision.
func (r *Reviewer) ask(ctx context.Context, key string, caller user.Info, cluster string, attributes authorizationv1.ResourceAttributes) decision {
	answer := r.lastDecision(key)
	isAllowed, err := r.send(ctx, caller, cluster, attributes)
	if err != nil {
		answer.err, answer.failedAt = fmt.Errorf("reviewing the rights of user %q in cluster %q: %w", caller.GetName(), cluster, err), r.now()
	} else {
		answer = decision{isAllowed: isAllowed, decidedAt: r.now()}
	}
	r.decisions.Add(key, answer, outageAge)
	return answer
}

// send sends a review. It reports whether the answer of the member allows the request. An error means
// that there is no answer.
func (r *Reviewer) send(ctx context.Context, caller user.Info, cluster string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	body, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	})
	if err != nil {
		return false, err
	}
	response, err := r.members.Do(ctx, cluster, caller, memberproxy.Request{
		Method: http.MethodPost, Path: reviewPath, Body: body, Idle: reviewTimeout,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	})
	// A caller whom the member does not let the control plane impersonate (any more) has no rights there.
	// The error of memberproxy has the code 403, as the response of the member.
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
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
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

// statusMessage returns the message of a Status, or the beginning of another response.
func statusMessage(text []byte) string {
	status := metav1.Status{}
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(bytes.ToValidUTF8(text[:min(len(text), 256)], nil))
}

// decisionKey contains everything on which a decision depends. Names of users and groups may
// contain any character, so they are quoted.
func decisionKey(caller user.Info, cluster string, a authorizationv1.ResourceAttributes) string {
	groups := slices.Sorted(slices.Values(caller.GetGroups()))
	return fmt.Sprintf("%q %q %s", caller.GetName(), groups, strings.Join([]string{
		cluster, a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name,
	}, "\x00"))
}

// All is used instead of a Reviewer if the right to use the API of search is enough.
type All struct{}

// Allowed returns true.
func (All) Allowed(context.Context, user.Info, string, string, schema.GroupVersionResource, string, string) (bool, error) {
	return true, nil
}
