package certs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/keyutil"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/pki"
)

var testNow = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// memory stores the certificates of an installation in memory.
type memory struct {
	set  certificates.Set
	spec certificates.Spec
	// writes counts the writes that changed a file.
	writes int
	// onRead is called after the certificates are read, for example to change the certificates in between.
	onRead func()
}

func (m *memory) Certificates(context.Context) (certificates.Set, certificates.Spec, error) {
	set := maps.Clone(m.set)
	if m.onRead != nil {
		m.onRead()
	}
	return set, m.spec, nil
}

func (m *memory) WriteCertificates(_ context.Context, previous, next certificates.Set) error {
	if !cmp.Equal(m.set, previous) {
		return errors.New("the certificates have changed")
	}
	if !cmp.Equal(m.set, next) {
		m.set, m.writes = maps.Clone(next), m.writes+1
	}
	return nil
}

func (m *memory) Close() {}

func testSpec() certificates.Spec {
	return certificates.Spec{Namespace: "karmada-system", EtcdReplicas: 1}
}

// newMemory returns an installation with all certificates.
func newMemory(t *testing.T) *memory {
	t.Helper()
	set, _, err := certificates.Ensure(nil, testSpec(), testNow)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{set: set, spec: testSpec()}
}

// run runs a command with an answer on standard input.
func run(t *testing.T, installation *memory, now time.Time, answer string, args ...string) (out, messages string, err error) {
	t.Helper()
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(answer)
	program := &command.Program{Name: "karmadactl", IOStreams: streams}
	open := func(context.Context, command.Host) (Installation, error) {
		if installation == nil {
			return nil, errors.New("the host cluster does not respond")
		}
		return installation, nil
	}
	cmd := newCommand(program, open, func() time.Time { return now })
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestCheckPrintsTable(t *testing.T) {
	out, _, err := run(t, newMemory(t), testNow, "", "check")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"NAME SUBJECT ISSUER EXPIRES RENEWED FROM STATE",
		"ca CN=karmada CN=karmada 2039-12-30T00:00:00Z 2036-08-30T07:58:20Z valid",
		"front-proxy-ca CN=front-proxy-ca CN=front-proxy-ca 2039-12-30T00:00:00Z 2036-08-30T07:58:20Z valid",
		"etcd-ca CN=etcd-ca CN=etcd-ca 2039-12-30T00:00:00Z 2036-08-30T07:58:20Z valid",
		"karmada CN=system:admin,O=system:masters CN=karmada 2031-01-01T00:00:00Z 2030-09-01T07:58:20Z valid",
		"apiserver CN=karmada-apiserver CN=karmada 2031-01-01T00:00:00Z 2030-09-01T07:58:20Z valid",
		"front-proxy-client CN=front-proxy-client CN=front-proxy-ca 2031-01-01T00:00:00Z 2030-09-01T07:58:20Z valid",
		"etcd-server CN=karmada-etcd-server CN=etcd-ca 2031-01-01T00:00:00Z 2030-09-01T07:58:20Z valid",
		"etcd-client CN=karmada-etcd-client CN=etcd-ca 2031-01-01T00:00:00Z 2030-09-01T07:58:20Z valid",
	}
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestCheckStates(t *testing.T) {
	tests := map[string]struct {
		change func(*memory)
		now    time.Time
		args   []string
		want   map[string]string // the states other than "valid"
		error  string
	}{
		"all are valid":                   {},
		"certificates are due":            {now: testNow.Add(300 * day), want: map[string]string{"karmada": "valid, due for renewal", "apiserver": "valid, due for renewal", "front-proxy-client": "valid, due for renewal", "etcd-server": "valid, due for renewal", "etcd-client": "valid, due for renewal"}},
		"a certificate has expired":       {change: func(m *memory) { m.expire(t, "apiserver") }, now: testNow.Add(2 * day), want: map[string]string{"apiserver": "expired on 2030-01-02"}, error: "1 certificate needs attention"},
		"a certificate expires soon":      {change: func(m *memory) { m.expire(t, "apiserver") }, args: []string{"--warn-within=48h"}, want: map[string]string{"apiserver": "expires in 24h"}, error: "1 certificate needs attention"},
		"a certificate is missing":        {change: func(m *memory) { delete(m.set, "apiserver.crt") }, want: map[string]string{"apiserver": "is missing"}, error: "1 certificate needs attention"},
		"all certificates are missing":    {change: func(m *memory) { m.set = nil }, want: map[string]string{"ca": "is missing", "front-proxy-ca": "is missing", "etcd-ca": "is missing", "karmada": "is missing", "apiserver": "is missing", "front-proxy-client": "is missing", "etcd-server": "is missing", "etcd-client": "is missing"}, error: "8 certificates need attention"},
		"certificates lack a name":        {change: func(m *memory) { m.spec.ExternalHosts = []string{"k.example.org"} }, want: map[string]string{"karmada": "lacks the name k.example.org", "apiserver": "lacks the name k.example.org"}, error: "2 certificates need attention"},
		"a renewal would fail":            {change: func(m *memory) { delete(m.set, "ca.key"); delete(m.set, "apiserver.crt") }, error: "the certificates cannot be renewed: certificate apiserver is missing"},
		"a key of an authority elsewhere": {change: func(m *memory) { delete(m.set, "ca.key") }},
		"an authority is due":             {change: func(m *memory) { m.spec.LeafLifetime = 9 * 365 * day; m.set = nil; m.ensure(t) }, now: testNow.Add(7 * 365 * day), want: map[string]string{"ca": "valid, due for rotation", "front-proxy-ca": "valid, due for rotation", "etcd-ca": "valid, due for rotation", "karmada": "valid, due for renewal", "apiserver": "valid, due for renewal", "front-proxy-client": "valid, due for renewal", "etcd-server": "valid, due for renewal", "etcd-client": "valid, due for renewal"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			installation, now := newMemory(t), testNow
			if test.change != nil {
				test.change(installation)
			}
			if !test.now.IsZero() {
				now = test.now
			}
			out, _, err := run(t, installation, now, "", append([]string{"check", "-o", "json"}, test.args...)...)
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) || command.ExitCode(err) > 1 {
				t.Fatalf("got error %v, want %q", err, test.error)
			}
			var result struct {
				Certificates []struct{ Name, State string }
			}
			if err := json.Unmarshal([]byte(out), &result); err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			for _, certificate := range result.Certificates {
				if certificate.State != "valid" {
					if got == nil {
						got = map[string]string{}
					}
					got[certificate.Name] = certificate.State
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		})
	}
}

// ensure issues the certificates of the installation.
func (m *memory) ensure(t *testing.T) {
	t.Helper()
	set, _, err := certificates.Ensure(m.set, m.spec, testNow)
	if err != nil {
		t.Fatal(err)
	}
	m.set = set
}

// expire replaces a certificate by one that is valid for a day.
func (m *memory) expire(t *testing.T, name string) {
	t.Helper()
	delete(m.set, name+".crt")
	spec := m.spec
	m.spec.LeafLifetime = day
	m.ensure(t)
	m.spec = spec
}

func TestCheckFormats(t *testing.T) {
	installation := newMemory(t)
	installation.set = certificates.Set{"ca.crt": installation.set["ca.crt"]}
	dir := writeDir(t, installation.set)
	tests := map[string]struct{ format, want string }{
		"names": {"name", "ca\n"},
		"YAML": {"yaml", `certificates:
- isAuthority: true
  issuer: CN=karmada
  name: ca
  notAfter: "2039-12-30T00:00:00Z"
  notBefore: "2029-12-31T23:55:00Z"
  renewAt: "2036-08-30T07:58:20Z"
  serial: SERIAL
  state: valid
  subject: CN=karmada
`},
		"a wide table": {"wide", "" +
			"NAME   SUBJECT      ISSUER       EXPIRES                RENEWED FROM           STATE   VALID FROM             SERIAL\n" +
			"ca     CN=karmada   CN=karmada   2039-12-30T00:00:00Z   2036-08-30T07:58:20Z   valid   2029-12-31T23:55:00Z   SERIAL\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, nil, testNow, "", "check", "--karmada-pki", dir, "-o", test.format)
			if err != nil {
				t.Fatal(err)
			}
			// The serial number is random. YAML quotes it if it looks like a number.
			serial := certificates.Inspect(installation.set, testNow)[0].Serial
			out = strings.NewReplacer(`"`+serial+`"`, "SERIAL", serial, "SERIAL").Replace(out)
			if diff := cmp.Diff(test.want, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func writeDir(t *testing.T, files certificates.Set) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckOfDirectory(t *testing.T) {
	complete := newMemory(t).set
	withoutKey := maps.Clone(complete)
	delete(withoutKey, "karmada.key")
	tests := map[string]struct {
		dir  string
		want string
	}{
		"a directory with all certificates":       {dir: writeDir(t, complete)},
		"a directory with a certificate only":     {dir: writeDir(t, withoutKey), want: "1 certificate needs attention"},
		"a directory without certificates":        {dir: writeDir(t, certificates.Set{"ca.key": nil, "readme.txt": nil}), want: "contains no certificates"},
		"a directory that does not exist":         {dir: filepath.Join(t.TempDir(), "absent"), want: "reading the directory of --karmada-pki"},
		"a file that is too large to be a secret": {dir: writeDir(t, certificates.Set{"ca.crt": make([]byte, maxFileSize+1)}), want: "more than 1048576"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, nil, testNow, "", "check", "--karmada-pki", test.dir)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestRenew(t *testing.T) {
	tests := map[string]struct {
		args     []string
		now      time.Time
		out      string
		messages string
		writes   int
	}{
		"nothing is due":      {now: testNow, messages: "no certificate is due for renewal\n"},
		"a named certificate": {now: testNow, args: []string{"apiserver"}, out: "apiserver: issued, because it was requested by name\n", writes: 1},
		"a dry run":           {now: testNow, args: []string{"apiserver", "--dry-run"}, out: "apiserver: would be issued, because it was requested by name\n"},
		"all are due": {now: testNow.Add(300 * day), writes: 1, out: "" +
			"karmada: issued, because it expires on 2031-01-01\napiserver: issued, because it expires on 2031-01-01\n" +
			"front-proxy-client: issued, because it expires on 2031-01-01\n" +
			"etcd-server: issued, because it expires on 2031-01-01\netcd-client: issued, because it expires on 2031-01-01\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			installation := newMemory(t)
			out, messages, err := run(t, installation, test.now, "", append([]string{"renew"}, test.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{test.out, test.messages, test.writes}, []any{out, messages, installation.writes}); diff != "" {
				t.Errorf("output, messages and writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRotateInThreeSteps(t *testing.T) {
	installation := newMemory(t)
	steps := []struct {
		args          []string
		answer        string
		out, messages string
	}{
		{[]string{"begin"}, "", "ca trusts a new authority, valid until 2039-12-30, besides the old one, which still signs\n", "then run karmadactl certs rotate-ca switch\n"},
		{[]string{"begin"}, "", "", "ca: this step was done before\nnext: "},
		{[]string{"switch"}, "n\n", "", "[y/n]: "},
		{[]string{"switch", "--dry-run"}, "", "ca signs with the new authority, and still trusts the old one\nkarmada: would be issued, because it is not signed by the authority ca\n", "dry run: nothing was stored\n"},
		{[]string{"switch"}, "y\n", "ca signs with the new authority, and still trusts the old one\nkarmada: issued, because it is not signed by the authority ca\napiserver: issued, because it is not signed by the authority ca\n", "then run karmadactl certs rotate-ca finish\n"},
		{[]string{"finish", "--force"}, "", "ca no longer trusts the old authority\n", "the rotation is finished\n"},
		{[]string{"begin", "--authority=etcd-ca"}, "", "etcd-ca trusts a new authority", "next: karmadactl certs rotate-ca switch --authority=etcd-ca\n"},
		{[]string{"switch", "--authority=etcd-ca"}, "", "etcd-ca signs with the new authority", "next: karmadactl certs rotate-ca finish --authority=etcd-ca\n"},
		{[]string{"finish", "--authority=etcd-ca"}, "", "etcd-ca no longer trusts the old authority\n", "the rotation is finished\n"},
	}
	for _, step := range steps {
		out, messages, err := run(t, installation, testNow, step.answer, append([]string{"rotate-ca"}, step.args...)...)
		if err != nil {
			t.Fatalf("%v: %v", step.args, err)
		}
		if !strings.HasPrefix(out, step.out) || step.out == "" && out != "" || !strings.Contains(messages, step.messages) {
			t.Errorf("%v printed %q and %q", step.args, out, messages)
		}
	}
	if installation.writes != 6 {
		t.Errorf("%d writes, want one for each step", installation.writes)
	}
	if _, _, err := run(t, installation, testNow, "", "check"); err != nil {
		t.Error(err)
	}
}

// writeAuthority writes an authority of a user and returns its files.
func writeAuthority(t *testing.T, notAfter time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Corporate CA"}, NotBefore: testNow.Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeDir(t, certificates.Set{"own.crt": pki.EncodeCerts(raw), "own.key": encoded})
	return filepath.Join(dir, "own.crt"), filepath.Join(dir, "own.key")
}

func TestRotateToAuthorityOfUser(t *testing.T) {
	installation := newMemory(t)
	certFile, keyFile := writeAuthority(t, testNow.Add(1000*day))
	for _, args := range [][]string{{"begin", "--ca-cert-file", certFile, "--ca-key-file", keyFile}, {"switch", "-f"}, {"finish", "-f"}} {
		if _, _, err := run(t, installation, testNow, "", append([]string{"rotate-ca"}, args...)...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	out, _, err := run(t, installation, testNow, "", "check", "-o", "json")
	if err != nil || !strings.Contains(out, `"issuer": "CN=Corporate CA"`) || strings.Contains(out, `"issuer": "CN=karmada"`) {
		t.Errorf("error %v, certificates %s", err, out)
	}
}

func TestErrors(t *testing.T) {
	certFile, keyFile := writeAuthority(t, testNow.Add(-time.Minute))
	damaged := newMemory(t)
	damaged.set["ca.crt"] = []byte("x")
	concurrent := newMemory(t)
	concurrent.onRead = func() { concurrent.set["changed.crt"] = nil }
	tests := map[string]struct {
		installation *memory
		args         []string
		want         string
		code         int
	}{
		"a host cluster that does not respond":      {args: []string{"renew"}, want: "the host cluster does not respond", code: 1},
		"an unknown certificate":                    {args: []string{"renew", "apiservr"}, want: "did you mean apiserver?", code: 2},
		"the renewal of an authority":               {args: []string{"renew", "ca"}, want: "rotate-ca begin --authority=ca", code: 2},
		"an unknown authority":                      {args: []string{"rotate-ca", "begin", "--authority=karmada"}, want: `there is no authority "karmada"`, code: 2},
		"a negative time":                           {args: []string{"check", "--warn-within=-1h"}, want: "must not be negative", code: 2},
		"a certificate of an authority without key": {args: []string{"rotate-ca", "begin", "--ca-cert-file=x"}, want: "belong together", code: 2},
		"an authority of the user for etcd":         {args: []string{"rotate-ca", "begin", "--authority=etcd-ca", "--ca-cert-file=x", "--ca-key-file=y"}, want: "only the authority ca can be given", code: 2},
		"a file that does not exist":                {args: []string{"rotate-ca", "begin", "--ca-cert-file=x", "--ca-key-file=y"}, want: "reading --ca-cert-file", code: 1},
		"an authority of the user that has expired": {args: []string{"rotate-ca", "begin", "--ca-cert-file", certFile, "--ca-key-file", keyFile}, want: "own.crt: the certificate has expired on 2029-12-31", code: 1},
		"a step in the wrong order":                 {installation: newMemory(t), args: []string{"rotate-ca", "switch", "-f"}, want: "no rotation has begun", code: 1},
		"a question without an answer":              {installation: newMemory(t), args: []string{"rotate-ca", "finish"}, want: "use --force to go on without a question", code: 1},
		"a damaged authority":                       {installation: damaged, args: []string{"renew"}, want: "put the right certificate ca.crt and key ca.key back", code: 1},
		"another command changes them at that time": {installation: concurrent, args: []string{"renew", "apiserver"}, want: "the certificates have changed: run the command again", code: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, test.installation, testNow, "", test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) || command.ExitCode(err) != test.code || out != "" {
				t.Errorf("got %q and %v with code %d, want %q with code %d", out, err, command.ExitCode(err), test.want, test.code)
			}
			if test.installation != nil && test.installation.writes > 0 {
				t.Error("certificates were stored")
			}
		})
	}
}

// The host cluster is selected by the same flags as in other commands for installations.
func TestHostFlags(t *testing.T) {
	var got command.Host
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	program := &command.Program{Name: "karmadactl", IOStreams: streams}
	cmd := New(program, func(_ context.Context, host command.Host) (Installation, error) {
		got = host
		return newMemory(t), nil
	})
	cmd.SetArgs([]string{"renew", "--kubeconfig=host.config", "--context=east", "-n", "prod"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := command.Host{Kubeconfig: command.Kubeconfig{Path: "host.config", Context: "east"}, Namespace: "prod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}
