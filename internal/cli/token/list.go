package token

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/bootstraptoken"
)

// listedToken is a token in JSON and YAML output. It has the same fields as the output of kubeadm.
type listedToken struct {
	Token       string     `json:"token"`
	Description string     `json:"description,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"` // nil means never
	Usages      []string   `json:"usages,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
	// Scope limits which clusters can be registered with the token.
	Scope *agent.Scope `json:"scope,omitempty"`
}

// newTokenList returns the tokens in a form for all output formats. The name of a token is its ID,
// which token delete accepts.
func newTokenList(tokens []bootstraptoken.Token, now time.Time) console.Output {
	list := console.Output{
		Header:        []string{"TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS", "SECRET", "SCOPE"},
		NarrowColumns: 6, ColumnGap: 3,
	}
	objects := make([]listedToken, 0, len(tokens))
	for _, token := range tokens {
		ttl, expires := formatLifetime(token, now)
		list.Rows = append(list.Rows, []string{
			token.String(), ttl, expires,
			console.OrNone(strings.Join(token.Usages, ",")), console.OrNone(token.Description), console.OrNone(strings.Join(token.Groups, ",")),
			"kube-system/" + bootstrapapi.BootstrapTokenSecretPrefix + token.ID, console.OrNone(token.Scope.String()),
		})
		list.Names = append(list.Names, token.ID)
		object := listedToken{Token: token.String(), Description: token.Description, Usages: token.Usages, Groups: token.Groups}
		if !token.Expires.IsZero() {
			object.Expires = &token.Expires
		}
		if !token.Scope.IsEmpty() {
			object.Scope = &token.Scope
		}
		objects = append(objects, object)
	}
	list.Object = map[string]any{"tokens": objects}
	return list
}

// formatLifetime returns the remaining lifetime and the expiration time of a token.
func formatLifetime(token bootstraptoken.Token, now time.Time) (ttl, expires string) {
	if token.Expires.IsZero() {
		return "<forever>", "<never>"
	}
	expires = token.Expires.Format(time.RFC3339)
	remaining := token.Expires.Sub(now)
	if remaining <= 0 {
		return "<expired>", expires
	}
	return duration.ShortHumanDuration(remaining), expires
}
