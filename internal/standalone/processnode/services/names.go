package services

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// serviceSuffix ends the names of Services. The cluster's domain may follow.
const (
	serviceSuffix = ".svc"
	clusterDomain = ".cluster.local"
)

// lookupResult is the result for a name's addresses.
type lookupResult struct {
	// isOfCluster is false for a name of another domain, which the machine resolves.
	isOfCluster bool
	// exists is false if the cluster has no such name.
	exists    bool
	addresses []netip.Addr
	// alias is the name to resolve instead. If it is empty, addresses is complete.
	alias string
}

// directory resolves names from Services and Pods.
type directory struct {
	// find returns a Service, or nil.
	find func(namespace, name string) *corev1.Service
	// addressOf returns the address of a Service that has one.
	addressOf func(*corev1.Service) netip.Addr
	pods      []Pod
}

// namespaceOf returns the namespace of the Pod with the given address.
func (d directory) namespaceOf(address netip.Addr) string {
	for _, pod := range d.pods {
		if pod.Address == address {
			return pod.Namespace
		}
	}
	return ""
}

// resolve resolves a name without the final dot for a Pod of a namespace. The search domains of a
// Pod are emulated: a name without a dot is a Service of the namespace, and a name with one dot is
// a Service with its namespace. If there is no such Service, the machine resolves the name.
func (d directory) resolve(name, namespace string) lookupResult {
	name = strings.ToLower(name)
	inDomain, hasDomain := strings.CutSuffix(name, clusterDomain)
	service, hasSuffix := strings.CutSuffix(inDomain, serviceSuffix)
	switch words := strings.Split(service, "."); {
	case hasSuffix && len(words) == 2:
		return d.resolveService(words[1], words[0])
	case hasSuffix && len(words) == 3:
		return d.resolvePod(words[2], words[1], words[0])
	case hasSuffix, hasDomain:
		return lookupResult{isOfCluster: true}
	case len(words) == 1 && namespace != "" && d.find(namespace, name) != nil:
		return d.resolveService(namespace, name)
	case len(words) == 2 && d.find(words[1], words[0]) != nil:
		return d.resolveService(words[1], words[0])
	default:
		return lookupResult{}
	}
}

// resolveService returns the Service's address, the Pods' addresses of a headless Service, or the alias for
// an external name.
func (d directory) resolveService(namespace, name string) lookupResult {
	service := d.find(namespace, name)
	switch {
	case service == nil:
		return lookupResult{isOfCluster: true}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return lookupResult{isOfCluster: true, exists: true, alias: strings.TrimSuffix(service.Spec.ExternalName, ".")}
	case hasAddress(service):
		return lookupResult{isOfCluster: true, exists: true, addresses: []netip.Addr{d.addressOf(service)}}
	default:
		return lookupResult{isOfCluster: true, exists: true, addresses: d.published(service, "")}
	}
}

// resolvePod returns the address of a Pod that has a host name in a headless Service.
func (d directory) resolvePod(namespace, name, hostname string) lookupResult {
	service := d.find(namespace, name)
	if service == nil || hasAddress(service) {
		return lookupResult{isOfCluster: true}
	}
	addresses := d.published(service, hostname)
	return lookupResult{isOfCluster: true, exists: len(addresses) > 0, addresses: addresses}
}

// published returns the sorted Pod addresses of a headless Service. hostname selects the Pods with this host
// name; an empty one selects all.
func (d directory) published(service *corev1.Service, hostname string) []netip.Addr {
	var addresses []netip.Addr
	for _, pod := range selectPods(service, d.pods) {
		if !pod.IsReady && !service.Spec.PublishNotReadyAddresses {
			continue
		}
		if hostname == "" || pod.Hostname == hostname && pod.Subdomain == service.Name {
			addresses = append(addresses, pod.Address)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}
