package programs

import (
	"runtime"
	"testing"

	"github.com/google/uuid"

	"karmada.io/karmada/internal/programs/flags"
)

func TestAProcessIsItsPodAsLongAsNoOtherIs(t *testing.T) {
	if runtime.GOOS != "linux" {
		if owner, _ := identify("pod", flags.DefaultElection("lease")); owner == "pod" {
			t.Error("a process claims to be its Pod where nobody can tell whether it is the only one")
		}
		return
	}
	pod, election := uuid.NewString(), flags.DefaultElection("lease")
	owner, claim := identify(pod, election)
	if owner != pod {
		t.Fatalf("the first process in a Pod is %s, want %s", owner, pod)
	}
	beside, none := identify(pod, election)
	if beside == pod || none != nil {
		t.Errorf("a process beside it has the same identity")
	}
	other, elsewhere := identify(pod, flags.DefaultElection("another"))
	if other != pod {
		t.Errorf("for another Lease it is %s, want %s", other, pod)
	}
	defer elsewhere.Close()
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	next, claim := identify(pod, election)
	if next != pod {
		t.Fatalf("the next process in the Pod is %s, want %s", next, pod)
	}
	defer claim.Close()
	if first, second := newIdentity(""), newIdentity(""); first == second {
		t.Errorf("two processes outside of Pods are both %s", first)
	}
}

func newIdentity(pod string) string {
	owner, _ := identify(pod, flags.DefaultElection("lease"))
	return owner
}
