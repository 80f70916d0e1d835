package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxMessage is the size of a message that fits into one packet without extensions.
	maxMessage = 512
	// maxQueries limits the queries that are answered at the same time.
	maxQueries   = 32
	queryTimeout = 4 * time.Second
	recordTTL    = 1 // second
)

// startDNS serves the names of Services until ctx ends. It reads the objects for each query, so that an
// answer is never old.
func startDNS(ctx context.Context, at string, host client.Reader) error {
	connection, err := net.ListenPacket("udp", at)
	if err != nil {
		return fmt.Errorf("opening the port of DNS: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	slots := make(chan struct{}, maxQueries)
	go func() {
		for {
			buffer := make([]byte, maxMessage)
			size, from, err := connection.ReadFrom(buffer)
			if err != nil {
				return
			}
			slots <- struct{}{}
			go func() {
				defer func() { <-slots }()
				if response := answer(ctx, host, buffer[:size]); response != nil {
					_, _ = connection.WriteTo(response, from)
				}
			}()
		}
	}()
	return nil
}

// answer returns the response to a query. nil means no response.
func answer(ctx context.Context, host client.Reader, query []byte) []byte {
	message := dnsmessage.Message{}
	if err := message.Unpack(query); err != nil || len(message.Questions) != 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	question := message.Questions[0]
	addresses, found, err := lookUp(ctx, host, question.Name.String())
	message.Header = dnsmessage.Header{ID: message.ID, Response: true, Authoritative: true, RecursionDesired: message.RecursionDesired,
		RecursionAvailable: true}
	message.Answers, message.Authorities, message.Additionals = nil, nil, nil
	switch {
	case err != nil:
		message.RCode = dnsmessage.RCodeServerFailure
	case !found:
		message.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		for _, address := range addresses {
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: recordTTL},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	response, err := message.Pack()
	if err != nil {
		return nil
	}
	return response
}

// lookUp returns the addresses of SERVICE.NAMESPACE.svc.DOMAIN or HOSTNAME.SERVICE.NAMESPACE.svc.DOMAIN.
func lookUp(ctx context.Context, host client.Reader, name string) (addresses []netip.Addr, found bool, err error) {
	labels, ok := strings.CutSuffix(strings.ToLower(name), ".svc."+clusterDomain+".")
	parts := strings.Split(labels, ".")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return nil, false, nil
	}
	hostname := ""
	if len(parts) == 3 {
		hostname, parts = parts[0], parts[1:]
	}
	service := &corev1.Service{}
	if err := host.Get(ctx, client.ObjectKey{Namespace: parts[1], Name: parts[0]}, service); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	if ip, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && hostname == "" {
		return []netip.Addr{ip}, true, nil
	}
	slices := &discoveryv1.EndpointSliceList{}
	if err := host.List(ctx, slices, client.InNamespace(parts[1]), client.MatchingLabels{discoveryv1.LabelServiceName: parts[0]}); err != nil {
		return nil, false, fmt.Errorf("listing the endpoints of Service %s: %w", labels, err)
	}
	addresses = endpoints(slices.Items, hostname)
	return addresses, len(addresses) > 0, nil
}

// endpoints returns the addresses of ready endpoints. An empty hostname means all of them.
func endpoints(slices []discoveryv1.EndpointSlice, hostname string) []netip.Addr {
	var addresses []netip.Addr
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if !ready || hostname != "" && (endpoint.Hostname == nil || *endpoint.Hostname != hostname) {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses
}
