package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

var credentialsNow = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)

func tokenThat(claims string) []byte {
	return []byte("eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl")
}

// authorityFrom is a CA certificate that ends ten years after the time.
func authorityFrom(t *testing.T, now time.Time) (bundle []byte, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	until = now.Add(10 * 365 * 24 * time.Hour)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: until, IsCA: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), until
}

func TestWhatEndsFirstEndsTheCredentials(t *testing.T) {
	end := credentialsNow.Add(time.Hour)
	bound := tokenThat(fmt.Sprintf(`{"exp":%d,"nbf":%d,"iat":%d}`, end.Unix(), credentialsNow.Unix(), credentialsNow.Add(-time.Minute).Unix()))
	young, late := authorityFrom(t, credentialsNow)
	old, early := authorityFrom(t, credentialsNow.Add(-10*365*24*time.Hour+time.Minute))
	for name, tc := range map[string]struct {
		token, ca []byte
		insecure  bool
		until     time.Time
		of        string
	}{
		"a token of a Secret does not end":                       {token: tokenThat(`{"sub":"system:serviceaccount:karmada-cluster:karmada-m1"}`)},
		"a bound token ends":                                     {token: bound, until: end, of: "token"},
		"white space around a token does not matter":             {token: append(append([]byte("\n"), bound...), '\n'), until: end, of: "token"},
		"a token that is no JWT is taken as it is":               {token: []byte("b2f3c1.0d9e")},
		"a token with claims that cannot be read has no end":     {token: tokenThat(`{"exp":"tomorrow"}`)},
		"an end that no calendar has is none":                    {token: tokenThat(`{"exp":1e300}`)},
		"an end before all times is none":                        {token: tokenThat(`{"exp":-5}`)},
		"the CA certificate may end before the token":            {token: bound, ca: old, until: early, of: "CA certificate"},
		"the token may end before the CA certificate":            {token: bound, ca: young, until: end, of: "token"},
		"of several CA certificates the last one counts":         {token: []byte("t"), ca: append(append([]byte{}, old...), young...), until: late, of: "CA certificate"},
		"a CA certificate does not count where nobody checks it": {token: bound, ca: old, insecure: true, until: end, of: "token"},
		"a bundle that is none has no end":                       {token: []byte("t"), ca: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		"no credentials have no end":                             {},
	} {
		t.Run(name, func(t *testing.T) {
			got := ValidityOf(map[string][]byte{"token": tc.token, "caBundle": tc.ca}, tc.insecure)
			if !got.Until.Equal(tc.until) || got.Of != tc.of {
				t.Errorf("until %s of %q, want %s of %q", got.Until, got.Of, tc.until, tc.of)
			}
		})
	}
}

func TestTheConditionOfCredentials(t *testing.T) {
	long := Validity{From: credentialsNow.Add(-time.Hour), Until: credentialsNow.Add(365 * 24 * time.Hour), Of: "token"}
	hour := Validity{From: credentialsNow.Add(-55 * time.Minute), Until: credentialsNow.Add(5 * time.Minute), Of: "token"}
	decade := Validity{From: credentialsNow.Add(-10 * 365 * 24 * time.Hour), Until: credentialsNow.Add(29 * 24 * time.Hour), Of: "CA certificate"}
	ended := Validity{Until: credentialsNow, Of: "token"}
	before := &metav1.Condition{Type: clusterv1alpha1.ClusterConditionCredentialsValid, Status: metav1.ConditionTrue, Reason: "Valid"}
	type said struct{ Status, Reason, Message string }
	for name, tc := range map[string]struct {
		stored   *metav1.Condition
		validity Validity
		refused  bool
		missing  bool
		want     *said
	}{
		"a Secret that is gone": {validity: long, missing: true,
			want: &said{"False", "Missing", "Secret karmada-cluster/m1 is gone: create it again; until the next restart the token that it held is used"}},
		"nothing is said of what does not end": {},
		"what ended once and does not any more is told": {stored: before,
			want: &said{"True", "Valid", "the cluster takes what it is reached with, which does not expire"}},
		"a far end": {validity: long, want: &said{"True", "Valid", "the token is valid until 2031-06-01T12:00:00Z"}},
		"the last tenth of a short life": {validity: hour,
			want: &said{"True", "ExpiresSoon", "the token in Secret karmada-cluster/m1 expires at 2030-06-01T12:05:00Z: put a new one there, it is used at once"}},
		"the last month of a long life": {validity: decade,
			want: &said{"True", "ExpiresSoon", "the CA certificate in Secret karmada-cluster/m1 expires at 2030-06-30T12:00:00Z: put a new one there, it is used at once"}},
		"the end": {validity: ended,
			want: &said{"False", "Expired", "the token in Secret karmada-cluster/m1 expired at 2030-06-01T12:00:00Z: put a new one there, it is used at once"}},
		"the end explains a refusal": {validity: ended, refused: true,
			want: &said{"False", "Expired", "the token in Secret karmada-cluster/m1 expired at 2030-06-01T12:00:00Z: put a new one there, it is used at once"}},
		"a refusal": {refused: true,
			want: &said{"False", "Refused", "the cluster refuses the token in Secret karmada-cluster/m1: put a new one there, it is used at once"}},
		"a refusal comes before an end that is near": {validity: hour, refused: true,
			want: &said{"False", "Refused", "the cluster refuses the token in Secret karmada-cluster/m1: put a new one there, it is used at once"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := CredentialsCondition(tc.stored, Credentials{Secret: "karmada-cluster/m1", Validity: tc.validity, Refused: tc.refused, Missing: tc.missing}, 3, credentialsNow)
			if got == nil {
				if tc.want != nil {
					t.Fatal("there is no condition")
				}
				return
			}
			if tc.want == nil {
				t.Fatalf("there is a condition: %+v", got)
			}
			if diff := cmp.Diff(*tc.want, said{string(got.Status), got.Reason, got.Message}); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if !conditions.Known(clusterv1alpha1.ResourceKindCluster, *got) {
				t.Errorf("%s %s is not in the table of conditions", got.Status, got.Reason)
			}
		})
	}
}

func FuzzValidityOf(f *testing.F) {
	f.Add(tokenThat(`{"exp":1}`), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("..."), []byte(""))
	f.Fuzz(func(t *testing.T, token, ca []byte) {
		validity := ValidityOf(map[string][]byte{"token": token, "caBundle": ca}, false)
		if year := validity.Until.Year(); year < 1 || year > 9999 {
			t.Errorf("the year %d cannot be written", year)
		}
		if validity.Until.IsZero() != (validity.Of == "") {
			t.Errorf("it does not say what ends: %+v", validity)
		}
	})
}
