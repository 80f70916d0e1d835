package standalone

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// addressPrefix is the range of simulated addresses. It is reserved for providers' networks, so that no host
// on a private network or on the Internet has such an address.
var addressPrefix = netip.MustParsePrefix("100.64.0.0/10")

// addAddresses adds the controllers that give Services of type LoadBalancer and Ingresses an address.
func addAddresses(mgr manager.Manager) error {
	a := &addresses{mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).Named("simulated-load-balancers").For(&corev1.Service{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconcilerFunc[*corev1.Service](a.reconcileService))); err != nil {
		return fmt.Errorf("adding the load balancers: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("simulated-ingresses").For(&networkingv1.Ingress{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconcilerFunc[*networkingv1.Ingress](a.reconcileIngress))); err != nil {
		return fmt.Errorf("adding the addresses of Ingresses: %w", err)
	}
	return nil
}

// addresses sets objects' addresses, on which nothing listens.
type addresses struct{ cluster client.Client }

// simulatedAddress returns an object's address. It depends only on the UID, so that it never changes. That
// two objects may have the same address has no effect.
func simulatedAddress(uid types.UID) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uid))
	base := addressPrefix.Addr().As4()
	host := sum.Sum32() >> addressPrefix.Bits()
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(base[:])|host)
	return netip.AddrFrom4(address).String()
}

// reconcileService writes the load balancer's address to the status of a Service of type LoadBalancer, and
// removes it from a Service that no longer has this type.
func (a *addresses) reconcileService(ctx context.Context, service *corev1.Service) error {
	want := loadBalancerIngress(service)
	if service.DeletionTimestamp != nil || slices.EqualFunc(want, service.Status.LoadBalancer.Ingress, isSameIngress) {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = want
	if err := a.cluster.Status().Patch(ctx, service, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the address of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}

// loadBalancerIngress returns the address of a Service's load balancer, which a user may set.
func loadBalancerIngress(service *corev1.Service) []corev1.LoadBalancerIngress {
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	address := service.Spec.LoadBalancerIP
	if _, err := netip.ParseAddr(address); err != nil {
		address = simulatedAddress(service.UID)
	}
	mode := corev1.LoadBalancerIPModeVIP
	return []corev1.LoadBalancerIngress{{IP: address, IPMode: &mode}}
}

func isSameIngress(a, b corev1.LoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}

// reconcileIngress writes an address to the Ingress's status, regardless of its class.
func (a *addresses) reconcileIngress(ctx context.Context, ingress *networkingv1.Ingress) error {
	if ingress.DeletionTimestamp != nil || len(ingress.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	before := ingress.DeepCopy()
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: simulatedAddress(ingress.UID)}}
	if err := a.cluster.Status().Patch(ctx, ingress, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the address of Ingress %s/%s: %w", ingress.Namespace, ingress.Name, err)
	}
	return nil
}
