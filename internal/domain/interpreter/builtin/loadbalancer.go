package builtin

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// balancerStatus holds the status fields that Services and Ingresses have in common. An Ingress's entries
// have no IP mode.
type balancerStatus struct {
	LoadBalancer corev1.LoadBalancerStatus `json:"loadBalancer"`
}

// aggregateLoadBalancers combines the ingress points of all clusters without duplicates.
func aggregateLoadBalancers(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[corev1.ServiceStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	united := ingressPoints{}
	err = forEachStatus(items, func(_ string, status *balancerStatus) {
		for i := range status.LoadBalancer.Ingress {
			united.add(&status.LoadBalancer.Ingress[i])
		}
	})
	if err != nil {
		return nil, err
	}
	status := corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: united.sorted()}}
	keepStoredModes(status.LoadBalancer.Ingress, old.LoadBalancer.Ingress)
	return replaceStatus(template, &old, &status)
}

// keepStoredModes sets the stored IP mode in entries without one. The control plane's API server sets
// the default mode, but members with earlier Kubernetes releases do not, so every aggregation would
// otherwise find a difference and cause a write.
func keepStoredModes(list, stored []corev1.LoadBalancerIngress) {
	known := make(map[ingressPoint]bool, len(stored))
	for i := range stored {
		known[newIngressPoint(&stored[i])] = true
	}
	for i := range list {
		filled := newIngressPoint(&list[i])
		if filled.hasMode || known[filled] {
			continue
		}
		filled.hasMode, filled.mode = true, corev1.LoadBalancerIPModeVIP
		if known[filled] {
			list[i].IPMode = new(filled.mode)
		}
	}
}

// hasIngressPoint reports whether the member object's load balancer has an address.
func hasIngressPoint(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, err := typed[balancerStatus](memberObject.Object, "status")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(status.LoadBalancer.Ingress, func(ingress corev1.LoadBalancerIngress) bool {
		return ingress.Hostname != "" || ingress.IP != ""
	}), nil
}

// ingressPoint identifies an entry in a load balancer's status.
type ingressPoint struct {
	hostname, ip string
	hasMode      bool
	mode         corev1.LoadBalancerIPMode
}

func newIngressPoint(ingress *corev1.LoadBalancerIngress) ingressPoint {
	key := ingressPoint{hostname: ingress.Hostname, ip: ingress.IP}
	if ingress.IPMode != nil {
		key.hasMode, key.mode = true, *ingress.IPMode
	}
	return key
}

type ingressPoints map[ingressPoint]*corev1.LoadBalancerIngress

// add adds the entry. If an entry with the same identity exists, add adds the ports to it.
func (i ingressPoints) add(ingress *corev1.LoadBalancerIngress) {
	key := newIngressPoint(ingress)
	known := i[key]
	if known == nil {
		known = &corev1.LoadBalancerIngress{Hostname: ingress.Hostname, IP: ingress.IP, IPMode: ingress.IPMode}
		i[key] = known
	}
	for _, port := range ingress.Ports {
		if !slices.ContainsFunc(known.Ports, func(p corev1.PortStatus) bool { return comparePorts(p, port) == 0 }) {
			known.Ports = append(known.Ports, port)
		}
	}
}

// sorted returns the entries, sorted by hostname, IP and mode. Empty values are last.
func (i ingressPoints) sorted() []corev1.LoadBalancerIngress {
	list := make([]corev1.LoadBalancerIngress, 0, len(i))
	for _, ingress := range i {
		slices.SortFunc(ingress.Ports, comparePorts)
		list = append(list, *ingress)
	}
	slices.SortFunc(list, func(a, b corev1.LoadBalancerIngress) int {
		return cmp.Or(
			compareEmptyLast(a.Hostname == "", b.Hostname == ""), cmp.Compare(a.Hostname, b.Hostname),
			cmp.Compare(a.IP, b.IP),
			compareEmptyLast(a.IPMode == nil, b.IPMode == nil), compareOptional(a.IPMode, b.IPMode),
		)
	})
	return list
}

func comparePorts(a, b corev1.PortStatus) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol),
		compareEmptyLast(a.Error != nil, b.Error != nil), compareOptional(a.Error, b.Error),
	)
}

func compareEmptyLast(aEmpty, bEmpty bool) int {
	switch {
	case aEmpty == bEmpty:
		return 0
	case aEmpty:
		return 1
	}
	return -1
}

// compareOptional compares the values, and returns 0 if one of them is nil.
func compareOptional[T cmp.Ordered](a, b *T) int {
	if a == nil || b == nil {
		return 0
	}
	return cmp.Compare(*a, *b)
}
