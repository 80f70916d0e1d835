// Package agentaddress rejects connections to addresses that the agent of a cluster must not make the
// control plane connect to.
//
// The addresses of a cluster in pull mode come from its agent. A Guard checks the addresses to which
// a name is resolved at the time of each connection, because a name may resolve to another address
// than before. The addresses of clusters in push mode come from administrators and are not checked.
package agentaddress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

const (
	// ownAddressesMaxAge is the age after which the host of the control plane is resolved again.
	ownAddressesMaxAge = time.Minute
	lookupTimeout      = 5 * time.Second
)

// Options configure a Guard.
type Options struct {
	// AllowedCIDRs are the addresses that are allowed although they are, for example, loopback
	// addresses.
	AllowedCIDRs []net.IPNet
}

// DefaultOptions returns options without exceptions.
func DefaultOptions() Options { return Options{} }

// AddFlags adds the flag that sets the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IPNetSliceVar(&o.AllowedCIDRs, agent.AllowedCIDRsFlag, o.AllowedCIDRs,
		"CIDRs of addresses that agents may set in spec.apiEndpoint and spec.proxyURL of their Cluster, although they are loopback or link-local addresses or addresses of the control plane. By default, agents may set none of these.")
}

// Guard checks addresses that agents choose.
type Guard struct {
	allowed []netip.Prefix
	host    string
	port    uint16
	// lookup resolves a DNS name, and interfaces returns the addresses of this machine.
	lookup     func(ctx context.Context, host string) ([]netip.Addr, error)
	interfaces func() ([]net.Addr, error)
	now        func() time.Time

	mu         sync.Mutex
	resolved   []netip.Addr
	resolvedAt time.Time
}

// NewGuard returns a Guard. karmadaHost is the address of the control plane's API server, as in
// rest.Config.Host, or empty.
func NewGuard(o Options, karmadaHost string) *Guard {
	g := &Guard{
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		interfaces: net.InterfaceAddrs, now: time.Now,
	}
	for _, network := range o.AllowedCIDRs {
		if address, ok := netip.AddrFromSlice(network.IP); ok {
			ones, _ := network.Mask.Size()
			g.allowed = append(g.allowed, netip.PrefixFrom(address.Unmap(), ones))
		}
	}
	g.host, g.port = splitHost(karmadaHost)
	return g
}

// splitHost returns host and port of an address with or without scheme.
func splitHost(address string) (host string, port uint16) {
	target, err := url.Parse(address)
	if err != nil || target.Host == "" {
		target = &url.URL{Scheme: "https", Host: address}
	}
	number, err := strconv.ParseUint(target.Port(), 10, 16)
	if err != nil {
		number = 443
	}
	return target.Hostname(), uint16(number)
}

// StaticRules returns the rules for addresses that are written. They resolve no DNS names.
func (g *Guard) StaticRules() agent.AddressRules {
	rules := agent.AddressRules{Allowed: g.allowed, OwnHost: g.host, OwnAddresses: g.machineAddresses()}
	if address, err := netip.ParseAddr(g.host); err == nil {
		rules.OwnAddresses = append(rules.OwnAddresses, address.Unmap())
		rules.OwnEndpoints = append(rules.OwnEndpoints, netip.AddrPortFrom(address.Unmap(), g.port))
	}
	return rules
}

func (g *Guard) machineAddresses() []netip.Addr {
	found, err := g.interfaces()
	if err != nil {
		return nil // the system does not list its addresses
	}
	var addresses []netip.Addr
	for _, each := range found {
		if network, ok := each.(*net.IPNet); ok {
			if address, ok := netip.AddrFromSlice(network.IP); ok {
				addresses = append(addresses, address.Unmap())
			}
		}
	}
	return addresses
}

// rules returns StaticRules and adds the addresses to which the host of the control plane resolves.
func (g *Guard) rules(ctx context.Context) (agent.AddressRules, error) {
	rules := g.StaticRules()
	if g.host == "" || len(rules.OwnEndpoints) > 0 {
		return rules, nil
	}
	own, err := g.resolveOwnHost(ctx)
	for _, address := range own {
		rules.OwnAddresses = append(rules.OwnAddresses, address.Unmap())
		rules.OwnEndpoints = append(rules.OwnEndpoints, netip.AddrPortFrom(address.Unmap(), g.port))
	}
	return rules, err
}

// resolveOwnHost returns the addresses of the control plane's host. If the host cannot be resolved, it
// returns the previous addresses.
func (g *Guard) resolveOwnHost(ctx context.Context) ([]netip.Addr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.now(); g.resolved == nil || now.Sub(g.resolvedAt) > ownAddressesMaxAge {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addresses, err := g.lookup(ctx, g.host)
		if err != nil && g.resolved == nil {
			return nil, fmt.Errorf("resolving the host of the control plane: %w", err)
		}
		if err == nil {
			g.resolved, g.resolvedAt = addresses, now
		}
	}
	return g.resolved, nil
}

// Guards reports whether the addresses of the Cluster come from its agent.
func Guards(cluster *clusterv1alpha1.Cluster) bool {
	return cluster.Spec.SyncMode == clusterv1alpha1.Pull
}

// Dialer returns a function that connects like dialer, but returns an AddressError instead of
// connecting to an address that the agent of the cluster must not choose. field is the field of the
// Cluster with the address.
func (g *Guard) Dialer(dialer net.Dialer, cluster, field string) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		rules, err := g.rules(ctx)
		if err != nil {
			return err
		}
		to, err := netip.ParseAddrPort(address)
		if err == nil {
			err = rules.Check(to)
		}
		if err != nil {
			return &agent.AddressError{Cluster: cluster, Field: field, Cause: err}
		}
		return nil
	}
	return dialer.DialContext
}

// FieldOf returns the field of the Cluster to whose address the control plane connects.
func FieldOf(proxyURL string) string {
	if proxyURL != "" {
		return "spec.proxyURL"
	}
	return "spec.apiEndpoint"
}
