package certificates

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawSpec(t *rapid.T) Spec {
	label := rapid.StringMatching(`[a-z]([a-z0-9-]{0,20}[a-z0-9])?`)
	host := rapid.OneOf(
		rapid.StringMatching(`(\*\.)?[a-z0-9]{1,10}(\.[a-z0-9]{1,10}){0,3}`),
		rapid.StringMatching(`[A-Z][a-z0-9]{1,10}\.Example\.org`),
		rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"10.0.0.1", "::1", "fd00::7", "2001:DB8::1", "::ffff:10.0.0.2"}).Draw(t, "address")
		}),
	)
	return Spec{
		Namespace: label.Draw(t, "namespace"), ReleaseName: label.Draw(t, "release"), ClusterDomain: label.Draw(t, "domain") + ".local",
		ExternalHosts: rapid.SliceOfN(host, 0, 4).Draw(t, "hosts"), EtcdReplicas: rapid.IntRange(1, 5).Draw(t, "replicas"),
		LeafLifetime: time.Duration(rapid.Int64Range(int64(time.Hour), int64(2*365*day)).Draw(t, "lifetime")),
	}
}

// A program that calls Ensure often enough, that is, at least once in a third of the lifetime, never
// shows a certificate that has expired.
func TestEnsureRenewsInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, now := drawSpec(t), testNow
		set, _, err := Ensure(nil, spec, now)
		if err != nil {
			t.Fatal(err)
		}
		tokenKey, authority := set["karmada.key"], set["ca.crt"]
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			step := time.Duration(rapid.Int64Range(0, int64(spec.LeafLifetime/3-time.Second)).Draw(t, "step"))
			now = now.Add(step)
			for _, certificate := range Inspect(set, now) {
				if certificate.Problem != "" {
					t.Fatalf("before Ensure: %s %s", certificate.Name, certificate.Problem)
				}
			}
			if set, _, err = Ensure(set, spec, now); err != nil {
				t.Fatal(err)
			}
			checkUsable(t, set, now)
			again, changes, err := Ensure(set, spec, now)
			if err != nil || len(changes) > 0 {
				t.Fatalf("a second call changes %v (error %v)", changes, err)
			}
			if diff := cmp.Diff(set, again); diff != "" {
				t.Fatalf("a second call changes files:\n%s", diff)
			}
		}
		if !bytes.Equal(tokenKey, set["karmada.key"]) || !bytes.Equal(authority, set["ca.crt"]) {
			t.Fatal("the key for tokens or an authority has changed")
		}
	})
}

// Whatever files are damaged or lost, Ensure gives an error or a usable set.
func TestEnsureOfDamagedSet(t *testing.T) {
	complete, _ := mustEnsure(t, nil, testSpec(), testNow)
	files := []string{}
	for _, name := range append(AuthorityNames(), LeafNames()...) {
		files = append(files, name+".crt", name+".key")
	}
	rapid.Check(t, func(t *rapid.T) {
		set := complete.clone()
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			file := rapid.SampledFrom(files).Draw(t, "file")
			switch rapid.SampledFrom([]string{"lost", "empty", "cut", "other"}).Draw(t, "damage") {
			case "lost":
				delete(set, file)
			case "empty":
				set[file] = nil
			case "cut":
				set[file] = set[file][:rapid.IntRange(0, len(set[file])).Draw(t, "length")]
			case "other":
				set[file] = complete[rapid.SampledFrom(files).Draw(t, "source")]
			}
		}
		ensured, _, err := Ensure(set, testSpec(), testNow)
		if err != nil {
			return
		}
		checkUsable(t, ensured, testNow)
		again, changes, err := Ensure(ensured, testSpec(), testNow)
		if err != nil || len(changes) > 0 || cmp.Diff(ensured, again) != "" {
			t.Fatalf("a second call changes %v (error %v)", changes, err)
		}
	})
}

func FuzzFiles(f *testing.F) {
	complete, _ := mustEnsure(f, nil, testSpec(), testNow)
	f.Add("ca", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"))
	f.Add("karmada", complete["karmada.crt"], complete["ca.key"])
	f.Add("etcd-ca", append(bytes.Clone(complete["etcd-ca.crt"]), complete["ca.crt"]...), append(bytes.Clone(complete["etcd-ca.key"]), complete["ca.key"]...))
	f.Fuzz(func(t *testing.T, name string, cert, key []byte) {
		set := complete.clone()
		set[name+".crt"], set[name+".key"] = cert, key
		Inspect(set, testNow)
		_, _, _ = FinishRotation(set, name)
		if begun, _, err := BeginRotation(set, testSpec(), name, testNow); err == nil {
			_, _, _ = SwitchRotation(begun, testSpec(), name, testNow)
		}
		ensured, _, err := Ensure(set, testSpec(), testNow)
		if err != nil {
			return
		}
		if _, changes, err := Ensure(ensured, testSpec(), testNow); err != nil || len(changes) > 0 {
			t.Errorf("a second call changes %v (error %v)", changes, err)
		}
	})
}
