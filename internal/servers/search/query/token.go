package query

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/index"
)

// token is the content of a continue token.
type token struct {
	// Query is a hash of the query, so that a token cannot be used with another query.
	Query []byte `json:"q"`
	// After is the position of the page's last object: cluster, namespace, name, kind, group and
	// version.
	After [6]string `json:"after"`
}

func queryHash(q *searchquery.Query) []byte {
	sum := sha256.Sum256([]byte(q.String()))
	return sum[:12]
}

// newToken returns the token for the page after the given position.
func newToken(q *searchquery.Query, after index.Cursor) string {
	kind := after.Kind
	// A token can always be encoded.
	text, _ := json.Marshal(token{Query: queryHash(q),
		After: [6]string{after.Cluster, after.Namespace, after.Name, kind.Kind, kind.Group, kind.Version}})
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseToken returns the position in a token. It returns an error if the token belongs to another
// query.
func parseToken(text string, q *searchquery.Query) (index.Cursor, error) {
	if text == "" {
		return index.Cursor{}, nil
	}
	var t token
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	if err != nil || t.After[0] == "" {
		return index.Cursor{}, invalidParameter(parameterContinue, text, "use metadata.continue of the last page, or omit it to start again")
	}
	if string(t.Query) != string(queryHash(q)) {
		return index.Cursor{}, apierrors.NewBadRequest("the parameter continue belongs to another query: repeat the query of the last page, or omit it to start again")
	}
	after := index.Cursor{Cluster: t.After[0], Namespace: t.After[1], Name: t.After[2]}
	after.Kind.Kind, after.Kind.Group, after.Kind.Version = t.After[3], t.After[4], t.After[5]
	return after, nil
}
