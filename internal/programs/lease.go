package programs

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"karmada.io/karmada/internal/programs/flags"
)

// Lease is the Lease that replicas compete for, as one of them sees it.
type Lease struct {
	*resourcelock.LeaseLock
	// claim keeps other processes from the same identity, as long as this one has it.
	claim net.PacketConn
}

// NewLease makes the Lease of an election; nothing is asked of the control plane.
//
// A process that is killed cannot release its Lease, and whoever comes next waits
// until it is over. A process in the same Pod need not: the node starts a container
// again only when it has ended, so it has the identity of the one before and goes on
// at once.
func NewLease(karmada *rest.Config, election flags.Election) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding the name of this host: %w", err)
	}
	owner, claim := identify(flags.PodUID(), election)
	named := &Lease{claim: claim, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: election.Namespace, Name: election.Name},
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + owner},
	}}
	return named.Through(karmada)
}

// Through is the same Lease with the same owner, by another way to the control plane.
func (l *Lease) Through(karmada *rest.Config) (*Lease, error) {
	leases, err := coordinationv1.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return &Lease{claim: l.claim, LeaseLock: &resourcelock.LeaseLock{LeaseMeta: l.LeaseMeta, Client: leases, LockConfig: l.LockConfig}}, nil
}

// identify returns what tells a process from all others: its Pod, if it is known
// and no other process there has claimed to be it, such as one that somebody started
// by hand beside it; else something new.
func identify(pod string, election flags.Election) (string, net.PacketConn) {
	if pod == "" || runtime.GOOS != "linux" {
		return uuid.NewString(), nil
	}
	// The containers of a Pod share its network, where the kernel keeps such names
	// for exactly as long as the process lives. Pods that share the network of their
	// node have names of their own.
	name := uuid.NewSHA1(uuid.NameSpaceOID, []byte(pod+"/"+election.Namespace+"/"+election.Name))
	claim, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@karmada-" + name.String()})
	if err != nil {
		return uuid.NewString(), nil
	}
	return pod, claim
}

// leaseOf is the Lease of a process that leads or ends. A request that hangs must
// not cost it what it leads.
func leaseOf(karmada *rest.Config, election flags.Election) (*Lease, error) {
	asking := rest.AddUserAgent(karmada, "leader-election")
	asking.Timeout = max(election.RenewDeadline/2, time.Second)
	return NewLease(asking, election)
}
