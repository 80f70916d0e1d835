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

// Validity is how long something may be used. The zero value has no end.
type Validity struct {
	From, Until time.Time
	// Of is what ends: the token or the CA certificate.
	Of string
}

// Credentials are what a member is reached with, as far as it says itself.
type Credentials struct {
	// Secret holds them: namespace/name.
	Secret string
	// Validity is that of what ends first.
	Validity Validity
	// Refused tells that the member does not take them, Missing that the Secret is
	// gone and they are remembered.
	Refused, Missing bool
}

const (
	token       = "token"
	authorities = "CA certificate"
)

// ValidityOf is how long the credentials in a Secret may be used: until the token
// ends or the last of the CA certificates, whatever comes first. CA certificates
// do not count where the server is not verified. What cannot be read has no end,
// for whether it is right is not known here.
func ValidityOf(data map[string][]byte, insecure bool) Validity {
	first := tokenValidity(data[clusterv1alpha1.SecretTokenKey])
	if insecure {
		return first
	}
	trusted := authorityValidity(data[clusterv1alpha1.SecretCADataKey])
	if first.Until.IsZero() || !trusted.Until.IsZero() && trusted.Until.Before(first.Until) {
		first = trusted
	}
	return first
}

// maxTokenTime keeps a time in a token within what a time can be written as.
const maxTokenTime = 253402300799 // the end of the year 9999

// tokenValidity reads what a token of a service account says of itself, if it is
// one that ends. Nothing is verified: the member does that.
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
	until, ok := second(claims.Expires)
	if !ok {
		return Validity{}
	}
	from, ok := second(claims.NotBefore)
	if !ok {
		from, _ = second(claims.Issued)
	}
	return Validity{From: from, Until: until, Of: token}
}

func second(claim *float64) (time.Time, bool) {
	if claim == nil || math.IsNaN(*claim) || *claim <= 0 || *claim > maxTokenTime {
		return time.Time{}, false
	}
	return time.Unix(int64(*claim), 0).UTC(), true
}

// authorityValidity is that of the certificate in a bundle that ends last: as long
// as one is valid it may be the one that counts.
func authorityValidity(bundle []byte) Validity {
	var last Validity
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return last
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.NotAfter.After(last.Until) {
			continue
		}
		last = Validity{From: certificate.NotBefore.UTC(), Until: certificate.NotAfter.UTC(), Of: authorities}
	}
}

const (
	// soonShare is the part of a life at whose beginning its end is near.
	soonShare = 10
	// maxSoon is when the end of a long life is near.
	maxSoon = 30 * 24 * time.Hour
)

// soon is when the end is near: the last tenth of the life, a month at most.
func (v Validity) soon() time.Time {
	notice := maxSoon
	if !v.From.IsZero() {
		notice = min(notice, v.Until.Sub(v.From)/soonShare)
	}
	return v.Until.Add(-notice)
}

// Refusal is what to say of credentials that the member does not take.
func Refusal(c Credentials) string {
	return fmt.Sprintf("the cluster refuses the token in Secret %s: %s", c.Secret, remedy)
}

// remedy is what to do about credentials that are of no use.
const remedy = "put a new one there, it is used at once"

// CredentialsCondition is what a Cluster says of the credentials that it is reached
// with, given the condition that is stored (nil if there is none). The result is
// nil as long as there is nothing to say: they are taken and do not end.
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
		condition.Message = fmt.Sprintf("the %s in Secret %s expired at %s: %s", c.Validity.Of, c.Secret, until, remedy)
	case c.Refused:
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1alpha1.CredentialsRefusedReason
		condition.Message = Refusal(c)
	case c.Missing:
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1alpha1.CredentialsMissingReason
		condition.Message = fmt.Sprintf("Secret %s is gone: create it again; until the next restart the token that it held is used", c.Secret)
	case ends && !now.Before(c.Validity.soon()):
		condition.Reason = clusterv1alpha1.CredentialsExpireSoonReason
		condition.Message = fmt.Sprintf("the %s in Secret %s expires at %s: %s", c.Validity.Of, c.Secret, until, remedy)
	case ends:
		condition.Reason = clusterv1alpha1.CredentialsValidReason
		condition.Message = fmt.Sprintf("the %s is valid until %s", c.Validity.Of, until)
	case stored == nil:
		return nil
	default:
		condition.Reason = clusterv1alpha1.CredentialsValidReason
		condition.Message = "the cluster takes what it is reached with, which does not expire"
	}
	condition.Message = conditions.Clip(condition.Message)
	return condition
}
