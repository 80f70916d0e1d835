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

func tokenWithClaims(claims string) []byte {
	return []byte("eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl")
}

// newCACertificate returns a CA certificate that expires ten years after now.
func newCACertificate(t *testing.T, now time.Time) (bundle []byte, until time.Time) {
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

func TestValidityOf(t *testing.T) {
	end := credentialsNow.Add(time.Hour)
	bound := tokenWithClaims(fmt.Sprintf(`{"exp":%d,"nbf":%d,"iat":%d}`, end.Unix(), credentialsNow.Unix(), credentialsNow.Add(-time.Minute).Unix()))
	young, late := newCACertificate(t, credentialsNow)
	old, early := newCACertificate(t, credentialsNow.Add(-10*365*24*time.Hour+time.Minute))
	for name, tc := range map[string]struct {
		token, ca []byte
		insecure  bool
		until     time.Time
		of        string
	}{
		"a token without expiry":                                {token: tokenWithClaims(`{"sub":"system:serviceaccount:karmada-cluster:karmada-m1"}`)},
		"a bound token expires":                                 {token: bound, until: end, of: "token"},
		"white space around a token":                            {token: append(append([]byte("\n"), bound...), '\n'), until: end, of: "token"},
		"a token that is not a JWT":                             {token: []byte("b2f3c1.0d9e")},
		"a token with invalid claims":                           {token: tokenWithClaims(`{"exp":"tomorrow"}`)},
		"an expiry beyond the calendar":                         {token: tokenWithClaims(`{"exp":1e300}`)},
		"a negative expiry":                                     {token: tokenWithClaims(`{"exp":-5}`)},
		"the CA certificate expires before the token":           {token: bound, ca: old, until: early, of: "CA certificate"},
		"the token expires before the CA certificate":           {token: bound, ca: young, until: end, of: "token"},
		"the last of several CA certificates counts":            {token: []byte("t"), ca: append(append([]byte{}, old...), young...), until: late, of: "CA certificate"},
		"a CA certificate of an insecure connection is ignored": {token: bound, ca: old, insecure: true, until: end, of: "token"},
		"an invalid CA bundle":                                  {token: []byte("t"), ca: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		"no credentials":                                        {},
	} {
		t.Run(name, func(t *testing.T) {
			got := ValidityOf(map[string][]byte{"token": tc.token, "caBundle": tc.ca}, tc.insecure)
			if !got.Until.Equal(tc.until) || got.Credential != tc.of {
				t.Errorf("until %s of %q, want %s of %q", got.Until, got.Credential, tc.until, tc.of)
			}
		})
	}
}

func TestCredentialsCondition(t *testing.T) {
	long := Validity{From: credentialsNow.Add(-time.Hour), Until: credentialsNow.Add(365 * 24 * time.Hour), Credential: "token"}
	hour := Validity{From: credentialsNow.Add(-55 * time.Minute), Until: credentialsNow.Add(5 * time.Minute), Credential: "token"}
	decade := Validity{From: credentialsNow.Add(-10 * 365 * 24 * time.Hour), Until: credentialsNow.Add(29 * 24 * time.Hour), Credential: "CA certificate"}
	ended := Validity{Until: credentialsNow, Credential: "token"}
	before := &metav1.Condition{Type: clusterv1alpha1.ClusterConditionCredentialsValid, Status: metav1.ConditionTrue, Reason: "Valid"}
	type statusReasonMessage struct{ Status, Reason, Message string }
	for name, tc := range map[string]struct {
		stored   *metav1.Condition
		validity Validity
		rejected bool
		missing  bool
		want     *statusReasonMessage
	}{
		"a Secret that is gone": {validity: long, missing: true,
			want: &statusReasonMessage{"False", "Missing", "Secret karmada-cluster/m1 is gone: create it again; until the next restart the token that it held is used"}},
		"no condition without expiry": {},
		"a stored condition without expiry now": {stored: before,
			want: &statusReasonMessage{"True", "Valid", "the cluster accepts the credentials, which do not expire"}},
		"a distant expiry": {validity: long, want: &statusReasonMessage{"True", "Valid", "the token is valid until 2031-06-01T12:00:00Z"}},
		"the last tenth of a short validity": {validity: hour,
			want: &statusReasonMessage{"True", "ExpiresSoon", "the token in Secret karmada-cluster/m1 expires at 2030-06-01T12:05:00Z: put a new one there, it is used at once"}},
		"the last month of a long validity": {validity: decade,
			want: &statusReasonMessage{"True", "ExpiresSoon", "the CA certificate in Secret karmada-cluster/m1 expires at 2030-06-30T12:00:00Z: put a new one there, it is used at once"}},
		"expired": {validity: ended,
			want: &statusReasonMessage{"False", "Expired", "the token in Secret karmada-cluster/m1 expired at 2030-06-01T12:00:00Z: put a new one there, it is used at once"}},
		"an expiry explains a rejection": {validity: ended, rejected: true,
			want: &statusReasonMessage{"False", "Expired", "the token in Secret karmada-cluster/m1 expired at 2030-06-01T12:00:00Z: put a new one there, it is used at once"}},
		"rejected": {rejected: true,
			want: &statusReasonMessage{"False", "Refused", "the cluster rejects the token in Secret karmada-cluster/m1: put a new one there, it is used at once"}},
		"a rejection wins over a near expiry": {validity: hour, rejected: true,
			want: &statusReasonMessage{"False", "Refused", "the cluster rejects the token in Secret karmada-cluster/m1: put a new one there, it is used at once"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := CredentialsCondition(tc.stored, Credentials{Secret: "karmada-cluster/m1", Validity: tc.validity, Rejected: tc.rejected, SecretMissing: tc.missing}, 3, credentialsNow)
			if got == nil {
				if tc.want != nil {
					t.Fatal("there is no condition")
				}
				return
			}
			if tc.want == nil {
				t.Fatalf("there is a condition: %+v", got)
			}
			if diff := cmp.Diff(*tc.want, statusReasonMessage{string(got.Status), got.Reason, got.Message}); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			wantProblem := ""
			if tc.want.Status == "False" && tc.want.Reason != "Missing" {
				wantProblem = tc.want.Message
			}
			if problem := CredentialsProblem([]metav1.Condition{*got}); problem != wantProblem {
				t.Errorf("the problem is %q, want %q", problem, wantProblem)
			}
			if !conditions.IsKnown(clusterv1alpha1.ResourceKindCluster, *got) {
				t.Errorf("%s %s is not in the table of conditions", got.Status, got.Reason)
			}
		})
	}
}

func FuzzValidityOf(f *testing.F) {
	f.Add(tokenWithClaims(`{"exp":1}`), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("..."), []byte(""))
	f.Fuzz(func(t *testing.T, token, ca []byte) {
		validity := ValidityOf(map[string][]byte{"token": token, "caBundle": ca}, false)
		if year := validity.Until.Year(); year < 1 || year > 9999 {
			t.Errorf("the year %d cannot be written", year)
		}
		if validity.Until.IsZero() != (validity.Credential == "") {
			t.Errorf("it does not name the credential that expires: %+v", validity)
		}
	})
}
