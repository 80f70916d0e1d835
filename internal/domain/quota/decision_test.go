package quota

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAdmit(t *testing.T) {
	now := time.Unix(1000, 0)
	later, earlier := metav1.NewTime(now.Add(time.Second)), metav1.NewTime(now.Add(-time.Second))
	forged := metav1.NewTime(now.Add(time.Hour))
	ten := []Limit{{QuotaName: "team", Overall: list("cpu", "10")}}
	growth := func(before, after string) Request {
		return Request{UID: "web", Base: "5", Before: list("cpu", before), After: list("cpu", after)}
	}
	cases := map[string]struct {
		namespace Namespace
		request   Request
		// want is the error. wantOpen are the bindings whose reservations the ledger has afterwards.
		want     string
		wantOpen []types.UID
	}{
		"a workload that fits exactly": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "6")}}}, growth("0", "4"), "",
			[]types.UID{"web"},
		},
		"a workload that does not fit": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "4")}, "web": {"5", list("cpu", "4")}}},
			growth("4", "7"), "FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 11, limit 10.", nil,
		},
		"usage that shrinks while the namespace is above its limit": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "20")}, "web": {"5", list("cpu", "4")}}},
			growth("4", "3"), "", []types.UID{"web"},
		},
		"another resource that shrinks does not help": {
			Namespace{Limits: []Limit{{QuotaName: "team", Overall: list("cpu", "10", "memory", "1Gi")}}},
			Request{UID: "web", Base: "5", Before: list("cpu", "10"), After: list("cpu", "1", "memory", "2Gi")},
			"FederatedResourceQuota(shop/team) exceeded for resource memory: requested sum 2Gi, limit 1Gi.", nil,
		},
		"a limit of 0 leaves no room": {
			Namespace{Limits: []Limit{{QuotaName: "team", Overall: list("cpu", "0")}}}, growth("0", "1m"),
			"FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 1m, limit 0.", nil,
		},
		"the second of two quotas denies": {
			Namespace{Limits: []Limit{ten[0], {QuotaName: "tight", Overall: list("cpu", "2")}}}, growth("0", "3"),
			"FederatedResourceQuota(shop/tight) exceeded for resource cpu: requested sum 3, limit 2.", nil,
		},
		"a request that is not visible yet counts": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "4")}},
				Ledger: Ledger{Reservations: []Reservation{{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: later}}}},
			growth("0", "3"), "FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 11, limit 10.", nil,
		},
		"a request that is visible counts once": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"5", list("cpu", "6")}},
				Ledger: Ledger{Reservations: []Reservation{{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: later}}}},
			growth("0", "3"), "", []types.UID{"web"},
		},
		"a request that failed expires": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "4")}},
				Ledger: Ledger{Reservations: []Reservation{{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: earlier}}}},
			growth("0", "3"), "", []types.UID{"web"},
		},
		"a creation is settled when the binding is visible": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "1")}},
				Ledger: Ledger{Reservations: []Reservation{{UID: "api", Usage: list("cpu", "8"), Expires: later}}}},
			growth("0", "3"), "", []types.UID{"web"},
		},
		"a deletion settles the requests for the binding": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"9", nil}},
				Ledger: Ledger{Reservations: []Reservation{{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: later}}}},
			growth("0", "3"), "", []types.UID{"web"},
		},
		"of two requests for a binding the larger counts": {
			Namespace{Limits: ten, Stored: map[types.UID]StoredUsage{"api": {"4", list("cpu", "1")}},
				Ledger: Ledger{Reservations: []Reservation{
					{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: later}, {UID: "api", Base: "4", Usage: list("cpu", "2"), Expires: later},
				}}},
			growth("0", "3"), "FederatedResourceQuota(shop/team) exceeded for resource cpu: requested sum 11, limit 10.", nil,
		},
		"a replica that has not seen settled usage does not decide": {
			Namespace{Limits: ten, Version: "6", Ledger: Ledger{SettledAt: "7", SettledExpires: &later}}, growth("0", "1"), ErrBehind.Error(), nil,
		},
		"a replica is not behind for ever": {
			Namespace{Limits: ten, Version: "6", Ledger: Ledger{SettledAt: "7", SettledExpires: &earlier}}, growth("0", "1"), "",
			[]types.UID{"web"},
		},
		"entries with an impossible expiry do not count": {
			Namespace{Limits: ten, Version: "6", Ledger: Ledger{
				SettledAt: "7", SettledExpires: &forged, Reservations: []Reservation{{UID: "api", Base: "4", Usage: list("cpu", "8"), Expires: forged}},
			}}, growth("0", "3"), "", []types.UID{"web"},
		},
		"the ledger is bounded": {
			Namespace{Limits: ten, Ledger: Ledger{Reservations: repeated(Reservation{UID: "api", Base: "4", Expires: later}, MaxReservations)}},
			growth("0", "1"), ErrTooManyReservations.Error(), nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.namespace.Name = "shop"
			ledger, err := tc.namespace.Admit(tc.request, now)
			if got := textOf(err); got != tc.want {
				t.Fatalf("error %q, want %q", got, tc.want)
			}
			var open []types.UID
			for _, each := range ledger.Reservations {
				open = append(open, each.UID)
			}
			if diff := cmp.Diff(tc.wantOpen, open); diff != "" {
				t.Errorf("open reservations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettledReservationsAreRemembered(t *testing.T) {
	now := time.Unix(1000, 0)
	later := metav1.NewTime(now.Add(time.Second))
	namespace := Namespace{
		Limits: []Limit{{Overall: list("cpu", "10")}}, Version: "9",
		Stored: map[types.UID]StoredUsage{"a": {"8", list("cpu", "1")}, "b": {"9", list("cpu", "1")}},
		Ledger: Ledger{SettledAt: "3", Reservations: []Reservation{
			{UID: "b", Base: "4", Expires: later}, {UID: "a", Base: "4", Expires: later},
		}},
	}
	ledger, err := namespace.Admit(Request{UID: "web", After: list("cpu", "1")}, now)
	if err != nil {
		t.Fatal(err)
	}
	if ledger.SettledAt != "9" || ledger.SettledExpires == nil || !ledger.SettledExpires.After(now) {
		t.Errorf("settled at %q until %v, want at 9 until later than %v", ledger.SettledAt, ledger.SettledExpires, now)
	}
}

func TestNeedsRoom(t *testing.T) {
	namespace := Namespace{Limits: []Limit{{Overall: list("cpu", "10")}, {Overall: list("memory", "1Gi")}}}
	cases := map[string]struct {
		before, after corev1.ResourceList
		want          bool
	}{
		"more of a limited resource":     {list("cpu", "1"), list("cpu", "2"), true},
		"more of the second quota":       {list("cpu", "1"), list("cpu", "1", "memory", "1"), true},
		"less":                           {list("cpu", "2"), list("cpu", "1"), false},
		"the same in another notation":   {list("cpu", "1"), list("cpu", "1000m"), false},
		"more of a resource without cap": {list(), list("example.com/gpu", "1"), false},
		"nothing":                        {list("cpu", "1"), list(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := namespace.NeedsRoom(Request{Before: tc.before, After: tc.after}); got != tc.want {
				t.Errorf("needs room: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestExceededErrorIsFound(t *testing.T) {
	namespace := Namespace{Name: "shop", Limits: []Limit{{QuotaName: "team", Overall: list("cpu", "1")}}}
	_, err := namespace.Admit(Request{UID: "web", After: list("cpu", "2")}, time.Unix(0, 0))
	var exceeded *ExceededError
	if !errors.As(err, &exceeded) || exceeded.QuotaName != "team" || exceeded.Resource != "cpu" {
		t.Errorf("got %v, want an ExceededError of quota team", err)
	}
}

func repeated(reservation Reservation, n int) []Reservation {
	all := make([]Reservation, n)
	for i := range all {
		all[i] = reservation
	}
	return all
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
