package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// listener is an address on which a Service accepts connections, and the addresses to which the
// connections are forwarded.
type listener struct {
	address    netip.AddrPort
	isNodePort bool
	targets    []netip.AddrPort
}

// listeners returns the listeners of a Service. A Service whose selector matches no Pod of the node
// has no listeners.
func listeners(service *corev1.Service, address netip.Addr, pods []Pod) []listener {
	if !hasAddress(service) {
		return nil
	}
	selected := selectPods(service, pods)
	if len(selected) == 0 {
		return nil
	}
	var all []listener
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if port.Protocol != corev1.ProtocolTCP && port.Protocol != "" {
			continue
		}
		targets := portTargets(port, selected, service.Spec.PublishNotReadyAddresses)
		all = append(all, listener{address: netip.AddrPortFrom(address, uint16(port.Port)), targets: targets}) // a port
		if port.NodePort != 0 {
			all = append(all, listener{address: netip.AddrPortFrom(loopback, uint16(port.NodePort)), isNodePort: true, targets: targets}) // a port
		}
	}
	return all
}

// selectPods returns the Pods that the selector of a Service matches.
func selectPods(service *corev1.Service, pods []Pod) []Pod {
	if len(service.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var selected []Pod
	for _, pod := range pods {
		if pod.Namespace == service.Namespace && selector.Matches(pod.Labels) {
			selected = append(selected, pod)
		}
	}
	return selected
}

// portTargets returns the addresses behind a Service's port in a stable order. It includes Pods that are not
// ready only on request.
func portTargets(port *corev1.ServicePort, pods []Pod, includeNotReady bool) []netip.AddrPort {
	var targets []netip.AddrPort
	for _, pod := range pods {
		if number := targetPort(port, pod); number != 0 && (pod.IsReady || includeNotReady) {
			targets = append(targets, netip.AddrPortFrom(pod.Address, number))
		}
	}
	slices.SortFunc(targets, netip.AddrPort.Compare)
	return targets
}

// targetPort returns the Pod's port for a Service's port, or 0 if the Pod has no port of that name.
func targetPort(port *corev1.ServicePort, pod Pod) uint16 {
	switch target := port.TargetPort; {
	case target.Type == intstr.String:
		return uint16(pod.Ports[target.StrVal]) // a port
	case target.IntVal == 0:
		return uint16(port.Port) // a port
	default:
		return uint16(target.IntVal) // a port
	}
}

// listenMessage explains to the owner of a Service why an address cannot be used.
func listenMessage(want listener, err error) string {
	kind, port := "port", want.address.Port()
	if want.isNodePort {
		kind = "nodePort"
	}
	remedy := "the node tries again every " + retryPeriod.String()
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && want.isNodePort:
		remedy = "another program or another simulated cluster of this machine uses the port: use another nodePort; " + remedy
	case errors.Is(err, syscall.EACCES):
		remedy = fmt.Sprintf("this machine reserves ports below 1024 for root, so only API servers of Pods reach the port: for other programs, run `sysctl net.ipv4.ip_unprivileged_port_start=%d` as root, or use a higher port; %s", port, remedy)
	}
	return fmt.Sprintf("%s %d does not listen on %s: %v: %s", kind, port, want.address, err, remedy)
}
