package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/access/memberproxy"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// fakeMember responds to reviews. Its fields may change between requests.
type fakeMember struct {
	allow func(caller user.Info, cluster string, a authorizationv1.ResourceAttributes) bool
	err   error
	delay time.Duration
	code  int
	text  string
	asked atomic.Int32
}

func (f *fakeMember) Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error) {
	f.asked.Add(1)
	select {
	case <-time.After(f.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(request.Body, &review); err != nil {
		return nil, err
	}
	code, text := http.StatusCreated, f.text
	if f.code != 0 {
		code = f.code
	}
	if text == "" {
		review.Status.Allowed = f.allow(caller, cluster, *review.Spec.ResourceAttributes)
		encoded, err := json.Marshal(review)
		if err != nil {
			return nil, err
		}
		text = string(encoded)
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(text))}, nil
}

func only(name, cluster, namespace string) func(user.Info, string, authorizationv1.ResourceAttributes) bool {
	return func(caller user.Info, in string, a authorizationv1.ResourceAttributes) bool {
		return caller.GetName() == name && in == cluster && a.Namespace == namespace && a.Verb == "list"
	}
}

func TestDecisionsDependOnAllAttributes(t *testing.T) {
	member := &fakeMember{allow: only("alice", "m1", "web")}
	allowed := newMemberPermissions(member, time.Now)
	alice, bob := &user.DefaultInfo{Name: "alice"}, &user.DefaultInfo{Name: "bob"}
	for name, test := range map[string]struct {
		caller                   user.Info
		cluster, verb, namespace string
		want                     bool
	}{
		"what is allowed":   {alice, "m1", "list", "web", true},
		"another user":      {bob, "m1", "list", "web", false},
		"another cluster":   {alice, "m2", "list", "web", false},
		"another verb":      {alice, "m1", "watch", "web", false},
		"another namespace": {alice, "m1", "list", "db", false},
		"all namespaces":    {alice, "m1", "list", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got, err := allowed.Allowed(t.Context(), test.caller, test.cluster, test.verb, pods, test.namespace, "")
				if err != nil || got != test.want {
					t.Errorf("allowed %v, %v, want %v", got, err, test.want)
				}
			}
		})
	}
	if got := member.asked.Load(); got != 6 {
		t.Errorf("the member was asked %d times, want once for each decision", got)
	}
}

func TestGroupsDoNotMixWithNames(t *testing.T) {
	member := &fakeMember{allow: func(caller user.Info, _ string, _ authorizationv1.ResourceAttributes) bool {
		return len(caller.GetGroups()) == 2
	}}
	allowed := newMemberPermissions(member, time.Now)
	for _, test := range []struct {
		groups []string
		want   bool
	}{{[]string{"a", "b"}, true}, {[]string{`a" "b`}, false}, {[]string{"b", "a"}, true}} {
		got, err := allowed.Allowed(t.Context(), &user.DefaultInfo{Name: "x", Groups: test.groups}, "m1", "list", pods, "", "")
		if err != nil || got != test.want {
			t.Errorf("%q: allowed %v, %v", test.groups, got, err)
		}
	}
}

// pass lets the fake time of a test pass.
func pass(d time.Duration) { <-time.After(d) }

// TestOutage checks the decisions while a member does not respond.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member := &fakeMember{allow: only("alice", "m1", "web")}
		allowed := newMemberPermissions(member, time.Now)
		alice := &user.DefaultInfo{Name: "alice"}
		ask := func(namespace string) (bool, error) {
			return allowed.Allowed(t.Context(), alice, "m1", "list", pods, namespace, "")
		}
		if got, err := ask("web"); !got || err != nil {
			t.Fatalf("allowed %v, %v", got, err)
		}
		member.err = errors.New("no route")
		pass(time.Minute)
		if got, err := ask("web"); !got || err != nil {
			t.Errorf("the last decision is not used: %v, %v", got, err)
		}
		if got, err := ask("db"); got || err == nil || !strings.Contains(err.Error(), `cluster "m1"`) {
			t.Errorf("what was never asked is %v, %v", got, err)
		}
		before := member.asked.Load()
		if _, err := ask("db"); err == nil || member.asked.Load() != before {
			t.Errorf("the member is asked again at once")
		}
		pass(2 * time.Hour)
		if got, err := ask("web"); got || err == nil {
			t.Errorf("an old decision is used: %v, %v", got, err)
		}
		member.err, member.allow = nil, only("another-user", "m1", "web")
		pass(time.Minute)
		if got, err := ask("web"); got || err != nil {
			t.Errorf("after the outage: %v, %v, want a denial", got, err)
		}
	})
}

// TestRevokedAccess checks that a member that forbids the review denies at once, and that a member that
// cannot respond does not.
func TestRevokedAccess(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "alice", errors.New("cannot impersonate"))
	tests := map[string]struct {
		err  error
		code int
		want bool
	}{
		"the control plane may not impersonate the caller": {err: forbidden},
		"the error is wrapped":                             {err: fmt.Errorf("cluster m1: %w", forbidden)},
		"the response is 403":                              {code: http.StatusForbidden},
		"the member rejects the token of the control plane": {
			err: apierrors.NewServiceUnavailable("the member rejects the token of the control plane"), want: true},
		"the response is 401": {code: http.StatusUnauthorized, want: true},
		"the response is 503": {code: http.StatusServiceUnavailable, want: true},
		"no connection":       {err: errors.New("no route"), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			member := &fakeMember{allow: only("alice", "m1", "web")}
			allowed := newMemberPermissions(member, func() time.Time { return now })
			ask := func() (bool, error) {
				return allowed.Allowed(t.Context(), &user.DefaultInfo{Name: "alice"}, "m1", "list", pods, "web", "")
			}
			if got, err := ask(); !got || err != nil {
				t.Fatalf("allowed %v, %v", got, err)
			}
			member.err, member.code = test.err, test.code
			now = now.Add(time.Minute)
			if got, err := ask(); got != test.want || err != nil {
				t.Errorf("allowed %v, %v, want %v", got, err, test.want)
			}
			// A denial replaces the last decision also in a later outage.
			member.err = errors.New("no route")
			now = now.Add(time.Minute)
			if got, err := ask(); got != test.want || err != nil {
				t.Errorf("in a later outage: allowed %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestHangingMemberEndsWithATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member := &fakeMember{delay: time.Hour}
		allowed := newMemberPermissions(member, time.Now)
		start := time.Now()
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				if got, err := allowed.Allowed(t.Context(), &user.DefaultInfo{Name: "alice"}, "m1", "list", pods, "", ""); got || err == nil {
					t.Errorf("allowed %v, %v", got, err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
		if asked := member.asked.Load(); asked != 1 {
			t.Errorf("asked %d times, want one shared review", asked)
		}
	})
}

func TestUnusualResponsesAllowNothing(t *testing.T) {
	for name, member := range map[string]*fakeMember{
		"no JSON":            {text: "<html>"},
		"an error":           {code: http.StatusForbidden, text: `{"kind":"Status","message":"users \"alice\" is forbidden"}`},
		"a long error page":  {code: http.StatusBadGateway, text: strings.Repeat("x", 1<<20)},
		"allowed and denied": {text: `{"status":{"allowed":true,"denied":true}}`},
		"an empty object":    {text: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := newMemberPermissions(member, time.Now)
			got, err := allowed.Allowed(t.Context(), &user.DefaultInfo{Name: "alice"}, "m1", "list", pods, "", "")
			if got {
				t.Error("allowed")
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
