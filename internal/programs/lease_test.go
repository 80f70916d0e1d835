package programs

import (
	"runtime"
	"testing"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/programs/flags"
)

func TestPodIdentityIsUsedByOneProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		if owner, _ := acquireIdentity("pod", flags.DefaultElection("lease")); owner == "pod" {
			t.Error("a process uses the identity of its Pod although it cannot exclude another process with that identity")
		}
		return
	}
	pod, election := uuid.NewString(), flags.DefaultElection("lease")
	owner, claim := acquireIdentity(pod, election)
	if owner != pod {
		t.Fatalf("the first process in a Pod has identity %s, want %s", owner, pod)
	}
	second, noSocket := acquireIdentity(pod, election)
	if second == pod || noSocket != nil {
		t.Errorf("a second process of the Pod has the same identity")
	}
	other, otherClaim := acquireIdentity(pod, flags.DefaultElection("another"))
	if other != pod {
		t.Errorf("the identity for another Lease is %s, want %s", other, pod)
	}
	defer otherClaim.Close()
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	next, claim := acquireIdentity(pod, election)
	if next != pod {
		t.Fatalf("the next process in the Pod has identity %s, want %s", next, pod)
	}
	defer claim.Close()
	if first, second := newIdentity(""), newIdentity(""); first == second {
		t.Errorf("two processes outside of Pods have the same identity %s", first)
	}
}

func newIdentity(pod string) string {
	owner, _ := acquireIdentity(pod, flags.DefaultElection("lease"))
	return owner
}

// TestLeaseKeepsTheConfiguration requires that the other clients of a process keep their watches, and
// their name.
func TestLeaseKeepsTheConfiguration(t *testing.T) {
	karmada := &rest.Config{Host: "https://karmada.example.com", UserAgent: "karmada-scheduler"}
	if _, err := newElectionLease(karmada, flags.DefaultElection("lease")); err != nil {
		t.Fatal(err)
	}
	if karmada.Timeout != 0 || karmada.UserAgent != "karmada-scheduler" {
		t.Errorf("the configuration now has the timeout %s and the user agent %s", karmada.Timeout, karmada.UserAgent)
	}
}
