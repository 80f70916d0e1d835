package builtin

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// balancerStatus is the part of the status that Services and Ingresses share. The
// entries of an Ingress are those of a Service without an IP mode.
type balancerStatus struct {
	LoadBalancer corev1.LoadBalancerStatus `json:"loadBalancer"`
}

// uniteLoadBalancers lists the entrances of all clusters, each once.
func uniteLoadBalancers(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	old, err := typed[corev1.ServiceStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	united := entrances{}
	err = eachStatus(items, func(_ string, status *balancerStatus) {
		for i := range status.LoadBalancer.Ingress {
			united.add(&status.LoadBalancer.Ingress[i])
		}
	})
	if err != nil {
		return nil, err
	}
	status := corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: united.sorted()}}
	keepModes(status.LoadBalancer.Ingress, old.LoadBalancer.Ingress)
	return replaceStatus(template, &old, &status)
}

// keepModes gives entries without a mode the one with which they are stored. The
// API server fills in the default, which members of earlier releases do not know:
// without this every pass would miss it anew.
func keepModes(list, stored []corev1.LoadBalancerIngress) {
	known := make(map[entrance]bool, len(stored))
	for i := range stored {
		known[entranceOf(&stored[i])] = true
	}
	for i := range list {
		filled := entranceOf(&list[i])
		if filled.hasMode || known[filled] {
			continue
		}
		filled.hasMode, filled.mode = true, corev1.LoadBalancerIPModeVIP
		if known[filled] {
			list[i].IPMode = new(filled.mode)
		}
	}
}

// hasEntrance reports whether a load balancer is set up.
func hasEntrance(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, err := typed[balancerStatus](memberObject.Object, "status")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(status.LoadBalancer.Ingress, func(ingress corev1.LoadBalancerIngress) bool {
		return ingress.Hostname != "" || ingress.IP != ""
	}), nil
}

// entrance identifies an entry of a load balancer's status.
type entrance struct {
	hostname, ip string
	hasMode      bool
	mode         corev1.LoadBalancerIPMode
}

func entranceOf(ingress *corev1.LoadBalancerIngress) entrance {
	key := entrance{hostname: ingress.Hostname, ip: ingress.IP}
	if ingress.IPMode != nil {
		key.hasMode, key.mode = true, *ingress.IPMode
	}
	return key
}

type entrances map[entrance]*corev1.LoadBalancerIngress

// add unites an entry with the known one of the same identity; their ports are
// united.
func (e entrances) add(ingress *corev1.LoadBalancerIngress) {
	key := entranceOf(ingress)
	known := e[key]
	if known == nil {
		known = &corev1.LoadBalancerIngress{Hostname: ingress.Hostname, IP: ingress.IP, IPMode: ingress.IPMode}
		e[key] = known
	}
	for _, port := range ingress.Ports {
		if !slices.ContainsFunc(known.Ports, func(p corev1.PortStatus) bool { return comparePorts(p, port) == 0 }) {
			known.Ports = append(known.Ports, port)
		}
	}
}

// sorted lists the entries by hostname, ip and mode; those without a hostname or
// a mode come last among their like.
func (e entrances) sorted() []corev1.LoadBalancerIngress {
	list := make([]corev1.LoadBalancerIngress, 0, len(e))
	for _, ingress := range e {
		slices.SortFunc(ingress.Ports, comparePorts)
		list = append(list, *ingress)
	}
	slices.SortFunc(list, func(a, b corev1.LoadBalancerIngress) int {
		return cmp.Or(
			emptyLast(a.Hostname == "", b.Hostname == ""), cmp.Compare(a.Hostname, b.Hostname),
			cmp.Compare(a.IP, b.IP),
			emptyLast(a.IPMode == nil, b.IPMode == nil), compareOptional(a.IPMode, b.IPMode),
		)
	})
	return list
}

func comparePorts(a, b corev1.PortStatus) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol),
		emptyLast(a.Error != nil, b.Error != nil), compareOptional(a.Error, b.Error),
	)
}

func emptyLast(aEmpty, bEmpty bool) int {
	switch {
	case aEmpty == bEmpty:
		return 0
	case aEmpty:
		return 1
	}
	return -1
}

// compareOptional compares two values; unless both are set they count as equal.
func compareOptional[T cmp.Ordered](a, b *T) int {
	if a == nil || b == nil {
		return 0
	}
	return cmp.Compare(*a, *b)
}
