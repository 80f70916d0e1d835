package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certutil "k8s.io/client-go/util/cert"
)

// rotate returns the sets after each step of a rotation: before, begun, switched, finished.
func rotate(t *testing.T, set Set, spec Spec, authority string, now time.Time) []Set {
	t.Helper()
	begun, changes, err := BeginRotation(set, spec, authority, now)
	if err != nil || len(changes) != 1 {
		t.Fatalf("begin: %v, error %v", changes, err)
	}
	switched, changes, err := SwitchRotation(begun, spec, authority, now)
	if err != nil || len(changes) != 1+len(leavesOf(authority)) {
		t.Fatalf("switch: %v, error %v", changes, err)
	}
	finished, changes, err := FinishRotation(switched, authority)
	if err != nil || len(changes) != 1 {
		t.Fatalf("finish: %v, error %v", changes, err)
	}
	return []Set{set, begun, switched, finished}
}

// connect connects a server that has the certificate of one set to a client of another set. Both
// verify each other.
func connect(server Set, serverName string, client Set, clientName, authority, host string) error {
	clientSide, serverSide := net.Pipe()
	deadline := time.Now().Add(time.Minute)
	_ = clientSide.SetDeadline(deadline)
	_ = serverSide.SetDeadline(deadline)
	serverConfig, err := tlsConfig(server, serverName, authority)
	if err != nil {
		return err
	}
	clientConfig, err := tlsConfig(client, clientName, authority)
	if err != nil {
		return err
	}
	clientConfig.ServerName = host
	serverResult := make(chan error, 1)
	go func() {
		defer serverSide.Close()
		_, err := tls.Server(serverSide, serverConfig).Write([]byte("x"))
		serverResult <- err
	}()
	// In TLS 1.3, a client ends its handshake before the server verifies the client. The client
	// therefore reads what the server writes after its verification.
	_, clientErr := tls.Client(clientSide, clientConfig).Read(make([]byte, 1))
	_ = clientSide.Close()
	return errors.Join(clientErr, <-serverResult)
}

func tlsConfig(set Set, name, authority string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(set[name+".crt"], set[name+".key"])
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(set[authority+".crt"]) {
		return nil, errors.New("no trusted certificates")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: trusted, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Time: func() time.Time { return testNow },
	}, nil
}

func TestNeighboringStepsTrustEachOther(t *testing.T) {
	steps := []string{"before", "begun", "switched", "finished"}
	tests := map[string]struct{ authority, server, client, host string }{
		"the authority of the control plane": {CA, APIServer, Karmada, "karmada-apiserver.karmada-system.svc.cluster.local"},
		"the authority of etcd":              {EtcdCA, EtcdServer, EtcdClient, "etcd.karmada-system.svc.cluster.local"},
		"the members of etcd":                {EtcdCA, EtcdServer, EtcdServer, "etcd-1.etcd.karmada-system.svc.cluster.local"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, _ := mustEnsure(t, nil, testSpec(), testNow)
			sets := rotate(t, set, testSpec(), test.authority, testNow)
			for server := range sets {
				for client := range sets {
					err := connect(sets[server], test.server, sets[client], test.client, test.authority, test.host)
					if isNeighbor := server-client <= 1 && client-server <= 1; isNeighbor && err != nil {
						t.Errorf("server %s, client %s: %v", steps[server], steps[client], err)
					}
				}
			}
			// Without the steps between, the sides do not know the authority of each other.
			if err := connect(sets[3], test.server, sets[0], test.client, test.authority, test.host); err == nil {
				t.Error("the old client trusts the new server: the rotation is no rotation")
			}
		})
	}
}

func TestNeighboringStepsTrustFrontProxy(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	sets := rotate(t, set, testSpec(), FrontProxyCA, testNow)
	for server := range sets {
		for client := range sets {
			if server-client > 1 || client-server > 1 {
				continue
			}
			trusted := x509.NewCertPool()
			trusted.AppendCertsFromPEM(sets[server]["front-proxy-ca.crt"])
			_, err := parse(t, sets[client], FrontProxyClient).Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: testNow, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			if err != nil {
				t.Errorf("server at step %d, client at step %d: %v", server, client, err)
			}
		}
	}
}

func TestStepsOfRotation(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	now := testNow.Add(day)
	sets := rotate(t, set, testSpec(), CA, now)
	before, begun, switched, finished := sets[0], sets[1], sets[2], sets[3]
	if !bytes.HasPrefix(begun["ca.crt"], before["ca.crt"]) || !bytes.HasPrefix(begun["ca.key"], before["ca.key"]) {
		t.Error("begun: the old authority is not the first one")
	}
	if !bytes.HasSuffix(switched["ca.crt"], before["ca.crt"]) || bytes.Contains(switched["ca.key"], before["ca.key"]) {
		t.Error("switched: want the old certificate last, and its key removed")
	}
	if bytes.Contains(finished["ca.crt"], before["ca.crt"]) || !bytes.Equal(finished["ca.key"], switched["ca.key"]) {
		t.Error("finished: the old authority is still trusted, or the key has changed")
	}
	for i, step := range sets {
		state, err := Rotation(step, CA)
		if want := []RotationState{RotationNone, RotationBegun, RotationSwitched, RotationNone}[i]; err != nil || state != want {
			t.Errorf("step %d has the state %q (error %v), want %q", i, state, err, want)
		}
		signing, err := SigningCertificate(step, CA)
		if err != nil {
			t.Fatal(err)
		}
		if certs, err := certutil.ParseCertsPEM(signing); err != nil || len(certs) != 1 || !certs[0].Equal(parse(t, step, CA)) {
			t.Errorf("step %d: the signing certificate is not the first one alone (error %v)", i, err)
		}
		// A renewal between two steps neither disturbs nor continues the rotation.
		if ensured, changes := mustEnsure(t, step, testSpec(), now); len(changes) > 0 || cmp.Diff(step, ensured) != "" {
			t.Errorf("step %d: Ensure changes %v", i, changes)
		}
		checkUsable(t, step, now)
		for file, content := range before {
			isOfCA := file == "ca.crt" || file == "ca.key" || file == "karmada.crt" || file == "apiserver.crt"
			if !isOfCA && !bytes.Equal(content, step[file]) {
				t.Errorf("step %d: %s has changed", i, file)
			}
		}
	}
}

func TestStepsInWrongOrder(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	external := testSpec()
	external.EtcdReplicas = 0
	sets := rotate(t, set, testSpec(), CA, testNow)
	unissued := sets[2].clone()
	unissued["karmada.crt"] = set["karmada.crt"]
	begin := func(set Set, spec Spec, authority string) func() (Set, []Change, error) {
		return func() (Set, []Change, error) { return BeginRotation(set, spec, authority, testNow) }
	}
	change := func(set Set, authority string) func() (Set, []Change, error) {
		return func() (Set, []Change, error) { return SwitchRotation(set, testSpec(), authority, testNow) }
	}
	finish := func(set Set, authority string) func() (Set, []Change, error) {
		return func() (Set, []Change, error) { return FinishRotation(set, authority) }
	}
	tests := map[string]struct {
		step func() (Set, []Change, error)
		want string
	}{
		"begin again changes nothing":                        {step: begin(sets[1], testSpec(), CA)},
		"switch again changes nothing":                       {step: change(sets[2], CA)},
		"finish again changes nothing":                       {step: finish(sets[3], CA)},
		"begin before the previous rotation is finished":     {step: begin(sets[2], testSpec(), CA), want: "the previous rotation is not finished: finish it"},
		"switch before begin":                                {step: change(sets[0], CA), want: "no rotation has begun: begin one"},
		"switch after finish":                                {step: change(sets[3], CA), want: "no rotation has begun"},
		"finish before switch":                               {step: finish(sets[1], CA), want: "the old authority still signs: switch the rotation first"},
		"finish while a certificate is of the old authority": {step: finish(unissued, CA), want: "karmada.crt is not signed by the new authority: switch the rotation again"},
		"an unknown authority":                               {step: begin(set, testSpec(), "karmada"), want: `there is no authority "karmada": use ca, front-proxy-ca, etcd-ca`},
		"finish an unknown authority":                        {step: finish(set, "karmada"), want: `there is no authority "karmada"`},
		"the authority of an external etcd":                  {step: begin(set, external, EtcdCA), want: "its etcd is external"},
		"an installation without certificates":               {step: begin(Set{}, testSpec(), CA), want: "ca.crt is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, changes, err := test.step()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if len(changes) > 0 || (err == nil) != (result != nil) {
				t.Errorf("changes %v", changes)
			}
		})
	}
	// A switch that was stored in part only is completed by the next switch.
	completed, changes, err := SwitchRotation(unissued, testSpec(), CA, testNow)
	if err != nil || len(changes) != 1 || changes[0].Name != Karmada {
		t.Fatalf("switch of a set with an old certificate: %v, error %v", changes, err)
	}
	if _, _, err := FinishRotation(completed, CA); err != nil {
		t.Error(err)
	}
}

func TestRotationFromLostKeyAndFromExpiredAuthority(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	tests := map[string]struct {
		lose func(Set)
		now  time.Time
	}{
		"the key of the authority is lost": {lose: func(s Set) { delete(s, "ca.key") }, now: testNow},
		"the authority has expired":        {lose: func(Set) {}, now: testNow.Add(12 * 365 * day)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			damaged := set.clone()
			test.lose(damaged)
			sets := rotate(t, damaged, testSpec(), CA, test.now)
			for _, certificate := range Inspect(sets[3], test.now) {
				isOfCA := certificate.Name == CA || certificate.Name == Karmada || certificate.Name == APIServer
				if isOfCA && certificate.Problem != "" {
					t.Errorf("%s %s", certificate.Name, certificate.Problem)
				}
			}
		})
	}
}

func TestRotationToGivenAuthority(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	spec := testSpec()
	spec.GivenCA = newAuthority(t, nil)
	sets := rotate(t, set, spec, CA, testNow)
	if !bytes.Equal(sets[3]["ca.crt"], spec.GivenCA.Cert.PEM) || !bytes.Equal(sets[3]["ca.key"], spec.GivenCA.Key.PEM) {
		t.Error("the given authority does not sign")
	}
	// At each step after the first one, the authority may be given and omitted.
	for i, step := range sets[1:] {
		for _, s := range []Spec{spec, testSpec()} {
			if _, changes := mustEnsure(t, step, s, testNow); len(changes) > 0 {
				t.Errorf("step %d: %v", i+1, changes)
			}
		}
	}
	var state *RotationError
	if _, _, err := BeginRotation(sets[3], spec, CA, testNow); !errors.As(err, &state) || !strings.Contains(err.Error(), "the given authority is in use already") {
		t.Errorf("begin with the authority in use: %v", err)
	}
	// Only the authority "ca" can be given.
	front, _, err := BeginRotation(sets[3], spec, FrontProxyCA, testNow)
	if err != nil || bytes.Contains(front["front-proxy-ca.crt"], spec.GivenCA.Cert.PEM) {
		t.Errorf("the given authority becomes front-proxy-ca (error %v)", err)
	}
}

// An authority of a user may be below another one. Its chain stays trusted after a rotation.
func TestChainStaysTrusted(t *testing.T) {
	root, own := newAuthority(t, nil), newAuthority(t, nil)
	rootPair, err := tls.X509KeyPair(root.Cert.PEM, root.Key.PEM)
	if err != nil {
		t.Fatal(err)
	}
	ownPair, err := tls.X509KeyPair(own.Cert.PEM, own.Key.PEM)
	if err != nil {
		t.Fatal(err)
	}
	template := *ownPair.Leaf
	template.Subject.CommonName, template.RawSubject = "Issuing CA", nil
	raw, err := x509.CreateCertificate(nil, &template, rootPair.Leaf, ownPair.Leaf.PublicKey, rootPair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	spec := testSpec()
	spec.GivenCA = own
	spec.GivenCA.Cert.PEM = append(certPEM(raw), root.Cert.PEM...)
	sets := rotate(t, set, spec, CA, testNow)
	if !bytes.Equal(sets[3]["ca.crt"], spec.GivenCA.Cert.PEM) {
		t.Error("the chain is not trusted after the rotation")
	}
	if state, err := Rotation(sets[3], CA); err != nil || state != RotationNone {
		t.Errorf("the state is %q (error %v)", state, err)
	}
	checkUsable(t, sets[3], testNow)
}
