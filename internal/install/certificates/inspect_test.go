package certificates

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"karmada.io/karmada/internal/pki"
)

func certPEM(raw []byte) []byte { return pki.EncodeCerts(raw) }

func TestInspect(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	backdated := testNow.Add(-5 * time.Minute)
	authority := func(name, cn string) Certificate {
		end := testNow.Add(3650 * day)
		return Certificate{Name: name, Subject: cn, Issuer: cn, NotBefore: backdated, NotAfter: end, RenewAt: end.Add(-end.Sub(backdated) / 3), IsAuthority: true}
	}
	leaf := func(name, subject, issuer string) Certificate {
		end := testNow.Add(365 * day)
		return Certificate{Name: name, Subject: subject, Issuer: issuer, NotBefore: backdated, NotAfter: end, RenewAt: end.Add(-end.Sub(backdated) / 3)}
	}
	want := []Certificate{
		authority("ca", "CN=karmada"), authority("front-proxy-ca", "CN=front-proxy-ca"), authority("etcd-ca", "CN=etcd-ca"),
		leaf("karmada", "CN=system:admin,O=system:masters", "CN=karmada"), leaf("apiserver", "CN=karmada-apiserver", "CN=karmada"),
		leaf("front-proxy-client", "CN=front-proxy-client", "CN=front-proxy-ca"),
		leaf("etcd-server", "CN=karmada-etcd-server", "CN=etcd-ca"), leaf("etcd-client", "CN=karmada-etcd-client", "CN=etcd-ca"),
	}
	if diff := cmp.Diff(want, Inspect(set, testNow), cmpopts.EquateApproxTime(time.Second), cmpopts.IgnoreFields(Certificate{}, "Serial")); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	if got, want := Inspect(set, testNow)[0].Serial, strings.ToUpper(parse(t, set, CA).SerialNumber.Text(16)); got != want {
		t.Errorf("serial number %s, want %s", got, want)
	}
	if got := Inspect(nil, testNow); len(got) > 0 {
		t.Errorf("an empty set has %v", got)
	}
}

func TestInspectFindsProblems(t *testing.T) {
	complete, _ := mustEnsure(t, nil, testSpec(), testNow)
	other, _ := mustEnsure(t, nil, testSpec(), testNow)
	begun, _, err := BeginRotation(complete, testSpec(), CA, testNow)
	if err != nil {
		t.Fatal(err)
	}
	switched, _, err := SwitchRotation(begun, testSpec(), CA, testNow)
	if err != nil {
		t.Fatal(err)
	}
	longLived := testSpec()
	longLived.LeafLifetime, longLived.AuthorityLifetime = 100*day, 100*day
	expiring, _ := mustEnsure(t, nil, longLived, testNow)
	renewed, _ := mustEnsure(t, expiring, longLived, testNow.Add(99*day))
	tests := map[string]struct {
		set    Set
		change func(Set)
		now    time.Time
		want   []string // name and problem of each certificate with a problem
	}{
		"none": {set: complete},
		"a key of an authority that is elsewhere":            {set: complete, change: func(s Set) { delete(s, "ca.key") }},
		"none while a rotation has begun":                    {set: begun},
		"none after a rotation was switched":                 {set: switched},
		"expired certificates":                               {set: complete, now: testNow.Add(366 * day), want: []string{"karmada expired on 2031-01-01", "apiserver expired on 2031-01-01", "front-proxy-client expired on 2031-01-01", "etcd-server expired on 2031-01-01", "etcd-client expired on 2031-01-01"}},
		"certificates of the future":                         {set: Set{"ca.crt": complete["ca.crt"]}, now: testNow.Add(-day), want: []string{"ca is not valid before 2029-12-31T23:55:00Z"}},
		"certificates of an authority that expired":          {set: renewed, now: testNow.Add(101 * day), want: []string{"ca expired on 2030-04-11", "front-proxy-ca expired on 2030-04-11", "etcd-ca expired on 2030-04-11", "karmada is signed by the authority ca, which expired on 2030-04-11", "apiserver is signed by", "front-proxy-client is signed by", "etcd-server is signed by", "etcd-client is signed by"}},
		"a certificate of another authority":                 {set: complete, change: func(s Set) { s["apiserver.crt"], s["apiserver.key"] = other["apiserver.crt"], other["apiserver.key"] }, want: []string{"apiserver is not signed by the authority ca"}},
		"a certificate without an authority":                 {set: complete, change: func(s Set) { delete(s, "etcd-ca.crt"); delete(s, "etcd-server.crt") }, want: []string{"etcd-client has no readable authority etcd-ca.crt"}},
		"a certificate without a key":                        {set: complete, change: func(s Set) { delete(s, "karmada.key") }, want: []string{"karmada has no key"}},
		"the key of another certificate":                     {set: complete, change: func(s Set) { s["karmada.key"] = s["apiserver.key"] }, want: []string{"karmada has no usable key"}},
		"the key of another authority":                       {set: complete, change: func(s Set) { s["ca.key"] = s["etcd-ca.key"] }, want: []string{"ca does not belong to the key in ca.key"}},
		"an authority that is none":                          {set: complete, change: func(s Set) { s["ca.crt"], s["ca.key"] = s["karmada.crt"], s["karmada.key"] }, want: []string{"ca is not a certificate authority", "apiserver is not signed by the authority ca"}},
		"files that are no certificates":                     {set: Set{"ca.crt": nil, "x.crt": []byte("x"), "karmada.key": []byte("x")}, want: []string{"ca cannot be read", "x cannot be read"}},
		"a certificate that the program does not know":       {set: Set{"client.crt": complete["etcd-client.crt"]}},
		"a certificate with an unknown name and another key": {set: Set{"client.crt": complete["etcd-client.crt"], "client.key": complete["ca.key"]}, want: []string{"client has no usable key"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, now := test.set.clone(), testNow
			if test.change != nil {
				test.change(set)
			}
			if !test.now.IsZero() {
				now = test.now
			}
			var got []string
			for _, certificate := range Inspect(set, now) {
				if certificate.Problem != "" {
					got = append(got, certificate.Name+" "+certificate.Problem)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}

func TestInspectNamesTheRolesInARotation(t *testing.T) {
	set, _ := mustEnsure(t, nil, testSpec(), testNow)
	sets := rotate(t, set, testSpec(), CA, testNow)
	for i, want := range [][]string{{"ca"}, {"ca", "ca (next)"}, {"ca", "ca (trusted)"}, {"ca"}} {
		var got []string
		for _, certificate := range Inspect(sets[i], testNow) {
			if strings.HasPrefix(certificate.Name, "ca") {
				got = append(got, certificate.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}
