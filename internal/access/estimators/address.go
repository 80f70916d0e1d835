package estimators

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// errNoEstimator means that a cluster has no estimator.
var errNoEstimator = errors.New("the cluster has no estimator")

// addresses are the addresses at which the estimator of a cluster may listen, as HOST:PORT.
type addresses struct {
	candidates []string
	// mayBeAbsent reports whether the cluster has no estimator if no host of the addresses exists.
	mayBeAbsent bool
	// serverName is the name of the Service that contains the address. A certificate for this name
	// is accepted, too, because the address may be an IP address that changes. It may be empty.
	serverName string
}

// findAddresses returns the addresses of the estimator of a cluster. The Service of the estimator
// in the Karmada API server contains the address. Without such a Service the estimator may have a
// Service in the cluster in which this process runs.
func (p *Pool) findAddresses(ctx context.Context, cluster string) (addresses, error) {
	ctx, cancel := context.WithTimeout(ctx, p.openTimeout)
	defer cancel()
	key := types.NamespacedName{Namespace: p.options.Namespace, Name: p.options.Prefix + "-" + cluster}
	host := key.Name + "." + key.Namespace + ".svc"
	service := &corev1.Service{}
	err := p.options.Services.Get(ctx, key, service)
	if apierrors.IsNotFound(err) {
		port := strconv.Itoa(p.options.Port)
		return addresses{candidates: []string{net.JoinHostPort(host+".cluster.local", port), net.JoinHostPort(host, port)}, mayBeAbsent: true},
			nil
	}
	if err != nil {
		return addresses{}, fmt.Errorf("reading Service %s: %w", key, err)
	}
	address, err := externalAddress(service, p.options.Port)
	if err != nil {
		return addresses{}, fmt.Errorf("Service %s: %w", key, err) //nolint:staticcheck // Service is a kind
	}
	return addresses{candidates: []string{address}, serverName: host}, nil
}

// externalAddress returns the address to which a Service of type ExternalName refers.
func externalAddress(service *corev1.Service, port int) (string, error) {
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		return "", fmt.Errorf("unsupported service type %s: set spec.type to %s, because no Pods run behind the Karmada API server",
			service.Spec.Type, corev1.ServiceTypeExternalName)
	}
	host := strings.TrimSpace(service.Spec.ExternalName)
	if host == "" {
		return "", errors.New("spec.externalName is empty: set it to the host of the estimator")
	}
	for _, each := range service.Spec.Ports {
		if int(each.Port) != port {
			continue
		}
		if each.TargetPort.Type != intstr.Int || each.TargetPort.IntVal <= 0 {
			return "", fmt.Errorf("targetPort %s of port %d is not supported: set it to a number", each.TargetPort.String(), port)
		}
		return net.JoinHostPort(host, each.TargetPort.String()), nil
	}
	return "", fmt.Errorf("spec.ports has no port %d: add it, or set --scheduler-estimator-port", port)
}
