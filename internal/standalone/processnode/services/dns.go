package services

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
)

const (
	// maxQuestionBytes is the size of the largest request.
	maxQuestionBytes = 1232
	// maxAddresses limits the addresses in a response, so that it always fits in a datagram.
	maxAddresses = 48
	// maxAliases limits a chain of external names.
	maxAliases = 8
	// maxForwarded limits the number of names that the machine resolves concurrently.
	maxForwarded = 32
	// forwardTimeout is shorter than the 5 seconds after which programs ask again.
	forwardTimeout = 4 * time.Second
	// recordSeconds is the TTL of a response. It is short, because Pods come and go.
	recordSeconds = 1
)

// lookupFunc resolves a name of another domain with the resolvers of the machine.
type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// serveDNS responds to questions for addresses until ctx ends.
func (s *Services) serveDNS(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.dns.Close() })
	defer stop()
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	slots := make(chan struct{}, maxForwarded)
	buffer := make([]byte, maxQuestionBytes)
	for {
		n, from, err := s.dns.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an error of a single datagram
		}
		r, ok := parseRequest(buffer[:n])
		if !ok {
			continue // no response, so that nobody can make servers respond to each other in a loop
		}
		s.resolveLocally(r, from)
		if r.isComplete {
			s.respond(r, from)
			continue
		}
		select {
		case slots <- struct{}{}:
			forwarding.Go(func() {
				defer func() { <-slots }()
				r.forward(ctx, net.DefaultResolver.LookupNetIP)
				s.respond(r, from)
			})
		default:
			r.code = dnsmessage.RCodeServerFailure
			s.respond(r, from)
		}
	}
}

// request is a question with its response.
type request struct {
	id       uint16
	question dnsmessage.Question
	// isComplete is false if the machine must resolve target.
	isComplete bool
	code       dnsmessage.RCode
	// aliases are the names that lead from the question to target. The addresses are those of
	// target.
	aliases   []string
	target    string
	addresses []netip.Addr
}

// parseRequest returns the first question of a message. ok is false if the message is no question.
func parseRequest(message []byte) (r *request, ok bool) {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || header.Response {
		return nil, false
	}
	question, err := parser.Question()
	if err != nil {
		return nil, false
	}
	return &request{id: header.ID, question: question, target: strings.TrimSuffix(question.Name.String(), ".")}, true
}

// resolveLocally resolves a question from the Services and Pods of the cluster.
func (s *Services) resolveLocally(r *request, from net.Addr) {
	if !isAddressType(r.question.Type) {
		r.isComplete = true // the name may have other records, so the response is an empty list
		return
	}
	d := s.directory()
	namespace := ""
	if udp, ok := from.(*net.UDPAddr); ok {
		namespace = d.namespaceOf(udp.AddrPort().Addr().Unmap())
	}
	r.resolve(d, namespace)
}

func isAddressType(kind dnsmessage.Type) bool {
	return kind == dnsmessage.TypeA || kind == dnsmessage.TypeAAAA
}

// resolve follows aliases until the addresses are known or a name does not belong to the cluster.
func (r *request) resolve(d directory, namespace string) {
	for range maxAliases {
		found := d.resolve(r.target, namespace)
		switch {
		case !found.isOfCluster:
			return
		case !found.exists:
			r.isComplete, r.code = true, dnsmessage.RCodeNameError
			return
		case found.alias == "":
			r.isComplete = true
			if r.question.Type == dnsmessage.TypeA {
				r.addresses = found.addresses
			}
			return
		}
		r.aliases, r.target = append(r.aliases, r.target), found.alias
	}
	r.isComplete, r.code = true, dnsmessage.RCodeServerFailure
}

// forward resolves a name of another domain.
func (r *request) forward(ctx context.Context, lookup lookupFunc) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	network := "ip4"
	if r.question.Type == dnsmessage.TypeAAAA {
		network = "ip6"
	}
	if address, err := netip.ParseAddr(r.target); err == nil {
		// An external name may be an address. Respond with it only if it belongs to the requested family.
		if address.Is4() == (network == "ip4") {
			r.addresses = []netip.Addr{address}
		}
		return
	}
	// The final dot excludes the search domains of the machine, which the program does not have.
	addresses, err := lookup(ctx, network, r.target+".")
	var missing *net.DNSError
	switch {
	case err == nil:
		r.addresses = addresses
	case errors.As(err, &missing) && missing.IsNotFound:
		// The resolver does not distinguish an unknown name from a name without addresses of this family. An
		// empty response is correct for both, because programs request both families.
	default:
		r.code = dnsmessage.RCodeServerFailure
	}
}

func (s *Services) respond(r *request, to net.Addr) {
	response, err := r.response()
	if err != nil {
		return // the name of an alias is too long for DNS
	}
	_, _ = s.dns.WriteTo(response, to) // the program asks again
}

// response encodes the request's response.
func (r *request) response() ([]byte, error) {
	builder := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: r.id, Response: true, Authoritative: true, RecursionAvailable: true, RCode: r.code,
	})
	builder.EnableCompression()
	err := errors.Join(builder.StartQuestions(), builder.Question(r.question), builder.StartAnswers())
	owner := r.question.Name
	for i := range r.aliases {
		next := r.target
		if i+1 < len(r.aliases) {
			next = r.aliases[i+1]
		}
		alias, nameErr := dnsmessage.NewName(next + ".")
		if nameErr != nil {
			return nil, nameErr // the caller sends no response
		}
		err = errors.Join(err, builder.CNAMEResource(r.header(owner), dnsmessage.CNAMEResource{CNAME: alias}))
		owner = alias
	}
	for i, address := range r.addresses {
		switch {
		case i == maxAddresses:
			return builder.Finish() //nolint:wrapcheck // the caller sends no response
		case r.question.Type == dnsmessage.TypeA && address.Unmap().Is4():
			err = errors.Join(err, builder.AResource(r.header(owner), dnsmessage.AResource{A: address.Unmap().As4()}))
		case r.question.Type == dnsmessage.TypeAAAA && address.Is6():
			err = errors.Join(err, builder.AAAAResource(r.header(owner), dnsmessage.AAAAResource{AAAA: address.As16()}))
		}
	}
	if err != nil {
		return nil, err // the caller sends no response
	}
	return builder.Finish() //nolint:wrapcheck // the caller sends no response
}

func (r *request) header(owner dnsmessage.Name) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, TTL: recordSeconds}
}

// directory returns the current names.
func (s *Services) directory() directory {
	return directory{find: s.findService, addressOf: s.serviceAddress, pods: s.options.Pods()}
}

// findService returns a Service of the cluster, or nil.
func (s *Services) findService(namespace, name string) *corev1.Service {
	service, err := s.lister.Services(namespace).Get(name)
	if err != nil {
		return nil // the lister reads a cache, so the Service does not exist
	}
	return service
}

// serviceAddress returns a Service's address, even before the Service has Pods.
func (s *Services) serviceAddress(service *corev1.Service) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses.addressOf(service)
}
