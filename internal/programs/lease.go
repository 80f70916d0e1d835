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

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs/flags"
)

// Lease is the leader election Lease, with the identity of one replica.
type Lease struct {
	*resourcelock.LeaseLock
	// identitySocket reserves the identity for this process. Other processes cannot use the
	// identity while the socket is open.
	identitySocket net.PacketConn
}

// NewLease returns the Lease of a leader election. It sends no request to the control plane.
//
// A process that is killed cannot release its Lease, so another replica waits until the Lease
// expires. A new process in the same Pod does not wait: the kubelet starts a container again only
// after the previous container ended, so the new process uses the identity of the previous process
// and becomes the leader immediately.
func NewLease(karmada *rest.Config, election flags.Election) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding the name of this host: %w", err)
	}
	owner, claim := acquireIdentity(podenvironment.PodUID(), election)
	lease := &Lease{identitySocket: claim, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: election.Namespace, Name: election.Name},
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + owner},
	}}
	return lease.WithConfig(karmada)
}

// WithConfig returns the same Lease with the same identity, but with another client configuration.
func (l *Lease) WithConfig(karmada *rest.Config) (*Lease, error) {
	leases, err := coordinationv1.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane: %w", err)
	}
	return &Lease{identitySocket: l.identitySocket,
		LeaseLock: &resourcelock.LeaseLock{LeaseMeta: l.LeaseMeta, Client: leases, LockConfig: l.LockConfig}}, nil
}

// acquireIdentity returns the unique identity of this process. The identity is derived from the
// UID of the Pod. It is random if the Pod is unknown, or if another process of the Pod already
// uses this identity (for example, a process that a user started manually).
func acquireIdentity(pod string, election flags.Election) (string, net.PacketConn) {
	if pod == "" || runtime.GOOS != "linux" {
		return uuid.NewString(), nil
	}
	// The containers of a Pod share a network namespace. In this namespace, the kernel reserves an
	// abstract socket name as long as the process lives. Pods with the network of their node share
	// one namespace, so the name contains the UID of the Pod.
	name := uuid.NewSHA1(uuid.NameSpaceOID, []byte(pod+"/"+election.Namespace+"/"+election.Name))
	claim, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@karmada-" + name.String()})
	if err != nil {
		return uuid.NewString(), nil
	}
	return pod, claim
}

// newElectionLease returns the Lease of a process that ends when it loses the leadership. The
// timeout of its client prevents the process from losing the leadership because a request
// hangs.
func newElectionLease(karmada *rest.Config, election flags.Election) (*Lease, error) {
	// A copy, because all other clients of the process use the configuration too. The timeout would end
	// each of their watches.
	config := rest.AddUserAgent(rest.CopyConfig(karmada), "leader-election")
	config.Timeout = max(election.RenewDeadline/2, time.Second)
	return NewLease(config, election)
}
