package install

import (
	"testing"

	"karmada.io/karmada/internal/install/rendering"
)

// TestCertificatesOfAnExternalEtcd requires that the certificates in the values are used, and not those
// of the etcd of another installation in the namespace.
func TestCertificatesOfAnExternalEtcd(t *testing.T) {
	issued, _ := newTestInstaller(t, nil, nil)
	if err := issued.ensureCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	ca, crt, key := string(issued.files["etcd-ca.crt"]), string(issued.files["etcd-client.crt"]), string(issued.files["etcd-client.key"])
	values := rendering.Values{"etcd": rendering.Values{"mode": "external", "external": rendering.Values{
		"servers": "https://etcd:2379", "certs": rendering.Values{"caCrt": ca, "crt": crt, "key": key},
	}}}
	other := NewSecret(namespace, etcdSecret, map[string][]byte{"etcd-ca.crt": []byte("other ca")})
	i, _ := newTestInstaller(t, values, nil, other)
	if err := i.ensureCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"etcd-ca.crt": ca, "etcd-client.crt": crt, "etcd-client.key": key} {
		if got := string(i.files[file]); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}

// TestCertificatesOfTheUserAreNotWritten requires that the Job of the chart leaves the Secrets to Helm.
func TestCertificatesOfTheUserAreNotWritten(t *testing.T) {
	issued, _ := newTestInstaller(t, nil, nil)
	if err := issued.ensureCertificates(t.Context()); err != nil {
		t.Fatal(err)
	}
	custom := rendering.Values{}
	for file, key := range customKeys {
		custom[key] = string(issued.files[file])
	}
	i, reported := newTestInstaller(t, rendering.Values{"certs": rendering.Values{"mode": "custom", "custom": custom}}, nil)
	if err := i.RenewCertificates(t.Context()); err != nil || i.written > 0 {
		t.Errorf("%d objects are written (%v): %v", i.written, *reported, err)
	}
	if string(i.files["ca.crt"]) != string(issued.files["ca.crt"]) {
		t.Error("the certificates of the values are not used")
	}
}
