package services

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
)

// testDirectory returns the names of a small cluster.
func testDirectory() directory {
	unready := headless("etcd")
	unready.Spec.PublishNotReadyAddresses = true
	all := map[string]*corev1.Service{}
	for _, s := range []*corev1.Service{
		service("web"), headless("db"), unready, headless("empty"),
		external("alias", "web.system.svc.cluster.local"), external("outside", "example.org."), external("loop", "loop.system.svc"), external("lost", "absent.system.svc"),
	} {
		all[s.Namespace+"/"+s.Name] = s
	}
	member := func(app, name, address string, ready bool) Pod {
		return Pod{Namespace: "system", Name: name, Hostname: name, Subdomain: app, Labels: map[string]string{"app": app}, Address: netip.MustParseAddr(address), IsReady: ready}
	}
	return directory{
		find:      func(namespace, name string) *corev1.Service { return all[namespace+"/"+name] },
		addressOf: func(*corev1.Service) netip.Addr { return netip.MustParseAddr("127.120.0.1") },
		pods: []Pod{
			member("db", "db-1", "127.70.0.2", true), member("db", "db-0", "127.70.0.1", true), member("db", "db-2", "127.70.0.3", false),
			member("etcd", "etcd-0", "127.70.0.4", false),
			{Namespace: "system", Name: "stray", Hostname: "stray", Labels: map[string]string{"app": "db"}, Address: netip.MustParseAddr("127.70.0.5"), IsReady: true},
		},
	}
}

func TestNamesOfCluster(t *testing.T) {
	const missing, forwarded = "no such name", "the machine resolves "
	tests := map[string]struct{ name, namespace, want string }{
		"a Service":                               {name: "web.system.svc.cluster.local", want: "127.120.0.1"},
		"a Service without the cluster domain":    {name: "web.system.svc", want: "127.120.0.1"},
		"a Service with its namespace":            {name: "web.system", want: "127.120.0.1"},
		"a Service of the own namespace":          {name: "web", namespace: "system", want: "127.120.0.1"},
		"a Service of another namespace":          {name: "web", namespace: "other", want: forwarded + "web"},
		"a name of an unknown client":             {name: "web", want: forwarded + "web"},
		"a Service in capital letters":            {name: "Web.System.SVC", want: "127.120.0.1"},
		"an unknown Service":                      {name: "absent.system.svc.cluster.local", want: missing},
		"an unknown short name":                   {name: "absent", namespace: "system", want: forwarded + "absent"},
		"another kind of name of the cluster":     {name: "a.pod.cluster.local", want: missing},
		"too many names before the suffix":        {name: "a.b.web.system.svc", want: missing},
		"the suffix only":                         {name: "svc", namespace: "system", want: forwarded + "svc"},
		"all ready Pods of a headless Service":    {name: "db.system.svc.cluster.local", want: "127.70.0.1 127.70.0.2 127.70.0.5"},
		"one Pod of a headless Service":           {name: "db-0.db.system.svc.cluster.local", want: "127.70.0.1"},
		"a Pod that is not ready":                 {name: "db-2.db.system.svc.cluster.local", want: missing},
		"a Pod that is not ready, but published":  {name: "etcd-0.etcd.system.svc.cluster.local", want: "127.70.0.4"},
		"a Pod without subdomain":                 {name: "stray.db.system.svc.cluster.local", want: missing},
		"a Pod of a Service with an address":      {name: "web-0.web.system.svc", want: missing},
		"a headless Service without Pods":         {name: "empty.system.svc", want: ""},
		"an external name of the cluster":         {name: "alias.system.svc", want: "web.system.svc.cluster.local: 127.120.0.1"},
		"an external name of another domain":      {name: "outside.system.svc", want: "example.org: " + forwarded + "example.org"},
		"an external name of itself":              {name: "loop.system.svc", want: "failure"},
		"an external name of an unknown Service":  {name: "lost.system.svc", want: missing},
		"a name of another domain":                {name: "registry.example.org", namespace: "system", want: forwarded + "registry.example.org"},
		"a name of a domain that is no namespace": {name: "web.example", namespace: "system", want: forwarded + "web.example"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &request{question: dnsmessage.Question{Type: dnsmessage.TypeA}, target: test.name}
			r.resolve(testDirectory(), test.namespace)
			if got := describe(r); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func describe(r *request) string {
	switch {
	case r.code == dnsmessage.RCodeNameError:
		return "no such name"
	case r.code != dnsmessage.RCodeSuccess:
		return "failure"
	}
	prefix := ""
	if len(r.aliases) > 0 {
		prefix = r.target + ": "
	}
	if !r.isComplete {
		return prefix + "the machine resolves " + r.target
	}
	var addresses []string
	for _, address := range r.addresses {
		addresses = append(addresses, address.String())
	}
	return prefix + strings.Join(addresses, " ")
}

func TestNamespaceOfClient(t *testing.T) {
	d := testDirectory()
	for address, want := range map[string]string{"127.70.0.1": "system", "127.0.0.1": ""} {
		if got := d.namespaceOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("a Pod with the address %s has the namespace %q, want %q", address, got, want)
		}
	}
}

var errTimeout = errors.New("i/o timeout")

func TestMachineResolvesOtherDomains(t *testing.T) {
	found := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	tests := map[string]struct {
		name      string
		kind      dnsmessage.Type
		err       error
		want      []netip.Addr
		wantCode  dnsmessage.RCode
		wantAsked string
	}{
		"a name":                   {name: "example.org", kind: dnsmessage.TypeA, want: found, wantAsked: "ip4 example.org."},
		"a name for IPv6":          {name: "example.org", kind: dnsmessage.TypeAAAA, want: found, wantAsked: "ip6 example.org."},
		"an unknown name":          {name: "example.org", kind: dnsmessage.TypeA, err: &net.DNSError{IsNotFound: true}, wantAsked: "ip4 example.org."},
		"a server that is silent":  {name: "example.org", kind: dnsmessage.TypeA, err: errTimeout, wantCode: dnsmessage.RCodeServerFailure, wantAsked: "ip4 example.org."},
		"an address":               {name: "192.0.2.9", kind: dnsmessage.TypeA, want: []netip.Addr{netip.MustParseAddr("192.0.2.9")}},
		"an address of the other":  {name: "192.0.2.9", kind: dnsmessage.TypeAAAA},
		"an address of this other": {name: "2001:db8::1", kind: dnsmessage.TypeAAAA, want: []netip.Addr{netip.MustParseAddr("2001:db8::1")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, asked := &request{question: dnsmessage.Question{Type: test.kind}, target: test.name}, ""
			r.forward(t.Context(), func(_ context.Context, network, host string) ([]netip.Addr, error) {
				asked = network + " " + host
				if test.err != nil {
					return nil, test.err
				}
				return found, nil
			})
			if asked != test.wantAsked || r.code != test.wantCode {
				t.Errorf("asked for %q with code %v, want %q and %v", asked, r.code, test.wantAsked, test.wantCode)
			}
			if diff := cmp.Diff(test.want, r.addresses, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

// podResolver resolves names as a program of a Pod does.
func podResolver(s *testServices, source string) *net.Resolver {
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort(source + ":0"))}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", s.DNSAddress())
	}}
}

func TestProgramResolvesNames(t *testing.T) {
	web := service("web")
	s := start(t, web, external("alias", "web.system.svc.cluster.local"), headless("db"), external("named", "192.0.2.7"))
	var pods []Pod
	for i := range maxAddresses + 10 {
		pods = append(pods, Pod{Namespace: "system", Name: "p", Labels: map[string]string{"app": "db"}, Address: netip.AddrFrom4([4]byte{127, 70, 1, byte(i + 1)}), IsReady: true})
	}
	s.setPods(pods...)
	resolver := podResolver(s, "127.70.1.1")
	for name, want := range map[string]string{
		"web": s.serviceAddress(web).String(), "web.system.svc": s.serviceAddress(web).String(), "alias.system.svc.cluster.local.": s.serviceAddress(web).String(),
		"named.system.svc": "192.0.2.7",
	} {
		addresses, err := resolver.LookupHost(t.Context(), name)
		if err != nil || strings.Join(addresses, " ") != want {
			t.Errorf("%s has the addresses %v (%v), want %s", name, addresses, err, want)
		}
	}
	if canonical, err := resolver.LookupCNAME(t.Context(), "alias.system.svc.cluster.local"); err != nil || canonical != "web.system.svc.cluster.local." {
		t.Errorf("the canonical name is %s (%v)", canonical, err)
	}
	if addresses, err := resolver.LookupHost(t.Context(), "db.system.svc."); err != nil || len(addresses) != maxAddresses {
		t.Errorf("a large Service has %d addresses (%v), want %d", len(addresses), err, maxAddresses)
	}
	_, err := resolver.LookupHost(t.Context(), "absent.system.svc.cluster.local.")
	var missing *net.DNSError
	if !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("an unknown name: error %v", err)
	}
	if _, err := resolver.LookupTXT(t.Context(), "web.system.svc."); !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("a record of another type: error %v", err)
	}
}

func TestInvalidRequestsGetNoResponse(t *testing.T) {
	valid, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a."), Type: dnsmessage.TypeA}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	response := append([]byte{}, valid...)
	response[2] |= 0x80
	for name, message := range map[string][]byte{"empty": nil, "not a message": []byte("hello"), "a response": response, "without a question": valid[:12], "cut": valid[:len(valid)-1]} {
		if r, ok := parseRequest(message); ok {
			t.Errorf("%s: parsed as %+v", name, r)
		}
	}
	if r, ok := parseRequest(valid); !ok || r.id != 7 || r.target != "a" {
		t.Errorf("a valid question: %+v, %t", r, ok)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, message []byte) {
		r, ok := parseRequest(message)
		if !ok {
			return
		}
		r.resolve(testDirectory(), "system")
		if response, err := r.response(); err == nil && len(response) > maxQuestionBytes {
			t.Errorf("a response of %d bytes", len(response))
		}
	})
}
