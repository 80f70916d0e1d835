package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Validity is the period in which a credential can be used. A zero Until means that it does not expire.
type Validity struct {
	From, Until time.Time
	// Credential names the credential that expires first: the token or the CA certificate.
	Credential string
}

// Credentials describe the control plane's credentials for a member.
type Credentials struct {
	// Secret is the namespace/name of the Secret that contains the credentials.
	Secret string
	// Validity is the validity of the credential that expires first.
	Validity Validity
	// Rejected reports whether the member rejects the credentials. SecretMissing reports whether the
	// Secret no longer exists, so that the credentials that were last read from it are still used.
	Rejected, SecretMissing bool
}

const (
	tokenCredential = "token"
	caCredential    = "CA certificate"
)

// ValidityOf returns how long the credentials in a Secret can be used: until the token or the last of
// the CA certificates expires, whichever is first. If insecure is true, it ignores CA certificates,
// because then the server is not verified. Data that cannot be parsed counts as not expiring, because
// its meaning is unknown.
func ValidityOf(data map[string][]byte, insecure bool) Validity {
	earliest := tokenValidity(data[clusterv1alpha1.SecretTokenKey])
	if insecure {
		return earliest
	}
	ca := caValidity(data[clusterv1alpha1.SecretCADataKey])
	if earliest.Until.IsZero() || !ca.Until.IsZero() && ca.Until.Before(earliest.Until) {
		earliest = ca
	}
	return earliest
}

// maxUnixTime is the maximum time in a token, in seconds since 1970. Later times cannot be formatted.
const maxUnixTime = 253402300799 // the end of the year 9999

// tokenValidity parses the validity from a ServiceAccount token's claims. The zero value means that the
// token does not expire. The token is not verified, because the member does that.
func tokenValidity(raw []byte) Validity {
	parts := bytes.Split(bytes.TrimSpace(raw), []byte("."))
	if len(parts) != 3 {
		return Validity{}
	}
	encoded, err := base64.RawURLEncoding.DecodeString(string(parts[1]))
	if err != nil {
		return Validity{}
	}
	var claims struct {
		Expires   *float64 `json:"exp"`
		NotBefore *float64 `json:"nbf"`
		Issued    *float64 `json:"iat"`
	}
	if json.Unmarshal(encoded, &claims) != nil || claims.Expires == nil {
		return Validity{}
	}
	until, ok := unixTime(claims.Expires)
	if !ok {
		return Validity{}
	}
	from, ok := unixTime(claims.NotBefore)
	if !ok {
		from, _ = unixTime(claims.Issued)
	}
	return Validity{From: from, Until: until, Credential: tokenCredential}
}

func unixTime(claim *float64) (time.Time, bool) {
	if claim == nil || math.IsNaN(*claim) || *claim <= 0 || *claim > maxUnixTime {
		return time.Time{}, false
	}
	return time.Unix(int64(*claim), 0).UTC(), true
}

// caValidity returns the validity of the bundle's last-to-expire certificate. As long as one
// certificate is valid, it may be the one that verifies the server.
func caValidity(bundle []byte) Validity {
	var latest Validity
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return latest
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.NotAfter.After(latest.Until) {
			continue
		}
		latest = Validity{From: certificate.NotBefore.UTC(), Until: certificate.NotAfter.UTC(), Credential: caCredential}
	}
}

const (
	// expiryNoticeShare defines when a credential expires soon: in the last 1/expiryNoticeShare of its
	// validity.
	expiryNoticeShare = 10
	// maxExpiryNotice is the maximum time before the expiry from which a credential expires soon.
	maxExpiryNotice = 30 * 24 * time.Hour
)

// expiresSoonAt returns the time from which the credential expires soon: in the last tenth of its
// validity, but at most 30 days before the expiry.
func (v Validity) expiresSoonAt() time.Time {
	notice := maxExpiryNotice
	if !v.From.IsZero() {
		notice = min(notice, v.Until.Sub(v.From)/expiryNoticeShare)
	}
	return v.Until.Add(-notice)
}

// RejectedMessage returns the message that the member rejects the given credentials.
func RejectedMessage(c Credentials) string {
	return fmt.Sprintf("the cluster rejects the token in Secret %s: %s", c.Secret, replaceSecretHint)
}

// replaceSecretHint tells users how to replace credentials that no longer work.
const replaceSecretHint = "put a new one there, it is used at once"

// CredentialsCondition returns the condition for a Cluster's credentials. stored is the stored
// condition, or nil if there is none. The result is nil as long as there is nothing to report, because
// the member accepts the credentials and they do not expire.
func CredentialsCondition(stored *metav1.Condition, c Credentials, generation int64, now time.Time) *metav1.Condition {
	condition := &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionCredentialsValid, Status: metav1.ConditionTrue,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	until := c.Validity.Until.UTC().Format(time.RFC3339)
	switch ends := !c.Validity.Until.IsZero(); {
	case ends && !now.Before(c.Validity.Until):
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1alpha1.CredentialsExpiredReason
		condition.Message = fmt.Sprintf("the %s in Secret %s expired at %s: %s", c.Validity.Credential, c.Secret, until, replaceSecretHint)
	case c.Rejected:
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1alpha1.CredentialsRefusedReason
		condition.Message = RejectedMessage(c)
	case c.SecretMissing:
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1alpha1.CredentialsMissingReason
		condition.Message = fmt.Sprintf("Secret %s is gone: create it again; until the next restart the token that it held is used", c.Secret)
	case ends && !now.Before(c.Validity.expiresSoonAt()):
		condition.Reason = clusterv1alpha1.CredentialsExpireSoonReason
		condition.Message = fmt.Sprintf("the %s in Secret %s expires at %s: %s", c.Validity.Credential, c.Secret, until, replaceSecretHint)
	case ends:
		condition.Reason = clusterv1alpha1.CredentialsValidReason
		condition.Message = fmt.Sprintf("the %s is valid until %s", c.Validity.Credential, until)
	case stored == nil:
		return nil
	default:
		condition.Reason = clusterv1alpha1.CredentialsValidReason
		condition.Message = "the cluster accepts the credentials, which do not expire"
	}
	condition.Message = conditions.LimitMessage(condition.Message)
	return condition
}

// CredentialsProblem returns the message of the stored condition if the cluster does not accept the
// credentials, and otherwise an empty string.
func CredentialsProblem(stored []metav1.Condition) string {
	condition := conditions.Get(stored, clusterv1alpha1.ClusterConditionCredentialsValid)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason == clusterv1alpha1.CredentialsMissingReason {
		return ""
	}
	return condition.Message
}
