// Package services makes Services reachable by their names and ports on a machine without a Service network.
// Each Service gets a loopback address. The package forwards TCP connections to this address to a ready Pod,
// and its DNS server responds with the address.
//
// Invariants:
//
//   - Only the node's Pods receive connections, because Pods on simulated nodes run no program.
//   - A Service listens only while it has a ready Pod. Otherwise, the kernel rejects connections at
//     once.
//   - Node ports and Services listen only on loopback addresses, so that other machines cannot reach
//     Pods.
//   - Names of the cluster are never sent to the machine's DNS servers.
//   - All listeners, connections and goroutines end with the context of Run.
//
// The package evaluates the Services' selectors itself, because EndpointSlices reject loopback addresses. It
// forwards only TCP. Session affinity and traffic policies have no effect.
package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"karmada.io/karmada/internal/loop"
)

// Pod is a Pod of the node whose programs can receive connections.
type Pod struct {
	Namespace, Name string
	// Hostname and Subdomain are the fields of the Pod spec that give the Pod a name in a headless Service.
	Hostname, Subdomain string
	Labels              labels.Set
	Address             netip.Addr
	IsReady             bool
	// Ports are the TCP ports of the containers that have a name.
	Ports map[string]int32
}

// Options configure the Services of a node.
type Options struct {
	// Client reads the Services of the cluster.
	Client kubernetes.Interface
	// Pods returns the Pods of the node that have not ended.
	Pods func() []Pod
	// Events receives the errors of Services.
	Events record.EventRecorder
	// ProxyDir is the directory that contains the proxy's certificates.
	ProxyDir string
	// ReservedPorts means that this machine reserves the ports below 1024 for root. If it is false,
	// New finds out.
	ReservedPorts bool
}

// retryPeriod is the time after which an address that another program uses is tried again.
const retryPeriod = 5 * time.Second

// Services forwards the connections to the Services of a cluster, and resolves their names.
type Services struct {
	options Options
	dns     net.PacketConn
	// proxy is nil if the node can listen on all ports of Services.
	proxy        *proxy
	changed      chan struct{}
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	lister       corelisters.ServiceLister

	mu         sync.Mutex
	addresses  *allocator
	forwarders map[listenKey]*forwarder
}

// listenKey identifies a listener of a Service.
type listenKey struct {
	service types.UID
	address netip.AddrPort
}

// New opens the sockets of the DNS server and the proxy. The caller must call Run, which closes
// them.
func New(o Options) (*Services, error) {
	informer := coreinformers.NewServiceInformer(o.Client, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	s := &Services{
		options: o, changed: make(chan struct{}, 1), addresses: newAllocator(), forwarders: map[listenKey]*forwarder{},
		informer: informer, lister: corelisters.NewServiceLister(informer.GetIndexer()),
	}
	var err error
	s.registration, err = informer.AddEventHandler(loop.Handlers[*corev1.Service]{
		Added:   func(*corev1.Service, bool) { s.UpdatePods() },
		Updated: func(_, _ *corev1.Service) { s.UpdatePods() },
		Deleted: func(*corev1.Service) { s.UpdatePods() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching Services: %w", err)
	}
	s.dns, err = net.ListenPacket("udp4", net.JoinHostPort(loopback.String(), "0"))
	if err != nil {
		return nil, fmt.Errorf("opening a port for the names of Services: %w", err)
	}
	if o.ReservedPorts || hasReservedPorts() {
		if s.proxy, err = newProxy(o.ProxyDir, s.dialProxied); err != nil {
			return nil, errors.Join(err, s.dns.Close())
		}
	}
	return s, nil
}

// DNSAddress returns the host and port of the DNS server.
func (s *Services) DNSAddress() string { return s.dns.LocalAddr().String() }

// UpdatePods must be called after a change of the node's Pods. It returns at once.
func (s *Services) UpdatePods() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// AwaitNames waits until the names of the existing Services can be resolved, or until ctx ends.
func (s *Services) AwaitNames(ctx context.Context) {
	cache.WaitForCacheSync(ctx.Done(), s.registration.HasSynced)
}

// Run forwards connections and resolves names until ctx ends.
func (s *Services) Run(ctx context.Context) {
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	defer s.closeForwarders()
	goroutines.Go(func() { s.informer.RunWithContext(ctx) })
	goroutines.Go(func() { s.serveDNS(ctx) })
	if s.proxy != nil {
		goroutines.Go(func() { s.proxy.run(ctx) })
	}
	s.followChanges(ctx)
}

// followChanges updates the forwarders after each change to Services and Pods.
func (s *Services) followChanges(ctx context.Context) {
	retry := time.NewTicker(retryPeriod)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-retry.C:
		}
		s.updateForwarders()
	}
}

// updateForwarders makes the forwarders match the Services and Pods.
func (s *Services) updateForwarders() {
	all, err := s.lister.List(labels.Everything())
	if err != nil {
		return // the lister reads a cache
	}
	pods := s.options.Pods()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses.retain(all)
	desired := map[listenKey]bool{}
	for _, service := range all {
		for _, want := range listeners(service, s.addresses.addressOf(service), pods) {
			key := listenKey{service: service.UID, address: want.address}
			desired[key] = true
			s.updateForwarder(key, service, want)
		}
	}
	for key, existing := range s.forwarders {
		if !desired[key] {
			delete(s.forwarders, key)
			existing.close()
		}
	}
}

// updateForwarder changes a forwarder's targets. It reports a new error as an event on the Service, and the
// next call retries. The caller must hold the lock.
func (s *Services) updateForwarder(key listenKey, service *corev1.Service, want listener) {
	existing := s.forwarders[key]
	if existing == nil {
		existing = newForwarder(want.address)
		s.forwarders[key] = existing
	}
	err := existing.setTargets(want.targets)
	message := ""
	if err != nil {
		message = listenMessage(want, err)
	}
	if message != "" && message != existing.reported {
		s.options.Events.Event(service, corev1.EventTypeWarning, "PortUnavailable", message)
	}
	existing.reported = message
}

// closeForwarders ends all listeners and connections.
func (s *Services) closeForwarders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, existing := range s.forwarders {
		delete(s.forwarders, key)
		existing.close()
	}
}
