package agent

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// AllowedCIDRsFlag is the flag that sets AddressRules.Allowed.
const AllowedCIDRsFlag = "agent-endpoint-allowed-cidrs"

// metadataAddresses are the addresses of cloud metadata services that are not link-local: those of Amazon
// Web Services, Alibaba Cloud, Azure and Oracle Cloud.
var metadataAddresses = []string{"fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"}

// AddressRules decide to which addresses an agent may make the control plane connect. An agent
// chooses such an address in spec.apiEndpoint and spec.proxyURL of its Cluster.
type AddressRules struct {
	// Allowed are exceptions from all rules except OwnEndpoints.
	Allowed []netip.Prefix
	// OwnHost is the host of the control plane's API server, an IP address or a DNS name. It may be
	// empty.
	OwnHost string
	// OwnEndpoints are the addresses and ports of the control plane's API server. Allowed does not apply to
	// them, because the API server would send requests to itself in an endless loop.
	OwnEndpoints []netip.AddrPort
	// OwnAddresses are the addresses of this machine and of the control plane's API server.
	OwnAddresses []netip.Addr
}

// Check returns an error if an agent must not make the control plane connect to the address. For an
// IPv6 address through which a gateway reaches an IPv4 address, the IPv4 address is checked too.
func (r AddressRules) Check(to netip.AddrPort) error {
	address := to.Addr().Unmap().WithZone("")
	embedded, isEmbedding := embeddedIPv4(address)
	for _, own := range []netip.Addr{address, embedded} {
		if own.IsValid() && slices.Contains(r.OwnEndpoints, netip.AddrPortFrom(own, to.Port())) {
			return fmt.Errorf("%s is the API server of the control plane itself", to)
		}
	}
	if r.isAllowed(address) {
		return nil
	}
	if err := r.validateAddress(address); err != nil || !isEmbedding || r.isAllowed(embedded) {
		return err
	}
	if err := r.validateAddress(embedded); err != nil {
		return fmt.Errorf("%s leads to an IPv4 address, and %w", address, err)
	}
	return nil
}

func (r AddressRules) isAllowed(address netip.Addr) bool {
	return slices.ContainsFunc(r.Allowed, func(allowed netip.Prefix) bool { return allowed.Contains(address) })
}

// validateAddress checks an address for which no exception exists.
func (r AddressRules) validateAddress(address netip.Addr) error {
	switch {
	case address.IsLoopback():
		return fmt.Errorf("%s is a loopback address", address)
	case address.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address", address)
	case address.IsUnspecified():
		return fmt.Errorf("%s is the unspecified address", address)
	case !address.IsGlobalUnicast():
		return fmt.Errorf("%s is not a unicast address", address)
	case slices.Contains(metadataAddresses, address.String()):
		return fmt.Errorf("%s is the address of a metadata service", address)
	case slices.Contains(r.OwnAddresses, address):
		return fmt.Errorf("%s is an address of the control plane", address)
	}
	return nil
}

// embeddedIPv4 returns the IPv4 address that is part of an IPv6 address: of an address for NAT64 (RFC
// 6052 and RFC 8215) or 6to4 (RFC 3056), or of an IPv4-compatible address (RFC 4291). The address :: and
// the loopback address contain none.
func embeddedIPv4(address netip.Addr) (embedded netip.Addr, found bool) {
	if !address.Is6() || address.IsUnspecified() || address.IsLoopback() {
		return netip.Addr{}, false
	}
	bytes := address.As16()
	for _, form := range []struct {
		prefix string
		offset int
	}{
		{"64:ff9b::/96", 12}, {"64:ff9b:1::/48", 12}, {"2002::/16", 2}, {"::/96", 12},
	} {
		if netip.MustParsePrefix(form.prefix).Contains(address) {
			return netip.AddrFromSlice(bytes[form.offset : form.offset+4])
		}
	}
	return netip.Addr{}, false
}

// validateHost does the same as Check for the host of a URL. Only the connection shows the addresses
// behind a DNS name, so validateHost rejects only names that are always local, and OwnHost.
func (r AddressRules) validateHost(host string, port uint16) error {
	if address, err := netip.ParseAddr(host); err == nil {
		return r.Check(netip.AddrPortFrom(address, port))
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return r.Check(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	case r.OwnHost != "" && name == strings.ToLower(strings.TrimSuffix(r.OwnHost, ".")):
		return fmt.Errorf("%s is the API server of the control plane itself", host)
	}
	return nil
}

// validate returns the errors in the addresses that an agent writes. It accepts stored values.
func (r AddressRules) validate(written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	var errs field.ErrorList
	for _, each := range []struct {
		name, address, stored string
		schemes               []string
	}{
		{"apiEndpoint", written.Spec.APIEndpoint, stored.Spec.APIEndpoint, []string{"https"}},
		// The connection to the cluster is encrypted also behind an HTTP or SOCKS5 proxy.
		{"proxyURL", written.Spec.ProxyURL, stored.Spec.ProxyURL, []string{"http", "https", "socks5"}},
	} {
		if each.address == "" || each.address == each.stored {
			continue
		}
		if err := r.validateURL(each.address, each.schemes); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", each.name), addressProblem(written.Name, err)))
		}
	}
	return errs
}

func (r AddressRules) validateURL(address string, schemes []string) error {
	target, err := url.Parse(address)
	if err != nil || target.Hostname() == "" {
		return fmt.Errorf("%q is not a URL with a host", shortened(address))
	}
	if !slices.Contains(schemes, target.Scheme) {
		return fmt.Errorf("%s does not have the scheme %s", target.Redacted(), strings.Join(schemes, ", "))
	}
	port, _ := strconv.ParseUint(target.Port(), 10, 16)
	if target.Port() == "" {
		port = map[string]uint64{"http": 80, "https": 443, "socks5": 1080}[target.Scheme]
	}
	return r.validateHost(target.Hostname(), uint16(port))
}

// AddressError is the error for a connection to an address that an agent must not choose.
type AddressError struct {
	Cluster, Field string
	Cause          error
}

func (a *AddressError) Error() string {
	return a.Field + ": " + addressProblem(a.Cluster, a.Cause)
}

func (a *AddressError) Unwrap() error { return a.Cause }

func addressProblem(cluster string, cause error) string {
	return fmt.Sprintf("the agent of cluster %q must not make the control plane connect to this address: %v; choose the https address at which the control plane reaches the cluster, or allow the address with --%s of karmada-aggregated-apiserver and karmada-search",
		cluster, cause, AllowedCIDRsFlag)
}
