// Package bootstraptoken answers "by what does a cluster that registers itself
// prove that it may, and how does it know that it talks to the right control
// plane?": by a token of a few hours that an administrator made for it, and by the
// hash of the certificate authority that it was told along with the token.
//
// A token is a Secret of kube-system of the kind that every API server knows, so
// that tokens of other tools are found here and the other way round.
package bootstraptoken

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"karmada.io/karmada/internal/domain/agent"
)

// DefaultTTL is how long a token lives unless told otherwise.
const DefaultTTL = 24 * time.Hour

// Usages of tokens.
const (
	// Signing lets the token prove that cluster-info comes from the control plane.
	Signing = "signing"
	// Authentication lets the holder of the token talk to the API server.
	Authentication = "authentication"
)

// createAttempts is how often a random ID may be taken.
const createAttempts = 5

// Token is a bootstrap token.
type Token struct {
	// ID is the public part, Secret the other one. Empty ones are chosen at random.
	ID, Secret string
	// Expires is when the token ends; the zero time is never.
	Expires time.Time
	// Usages are what the token is good for. None means all.
	Usages []string
	// Groups are those that the holder of the token is in. None means the one that
	// may register clusters.
	Groups []string
	// Description is for people.
	Description string
}

// String is the token as people pass it on.
func (t Token) String() string { return bootstraputil.TokenFromIDAndSecret(t.ID, t.Secret) }

// Parse reads a token: six characters, a dot and sixteen, all of a-z and 0-9.
func Parse(text string) (Token, error) {
	if !bootstraputil.IsValidBootstrapToken(text) {
		return Token{}, errors.New("a token is six characters, a dot and sixteen characters, all of a-z and 0-9")
	}
	id, secret, _ := strings.Cut(text, ".")
	return Token{ID: id, Secret: secret}, nil
}

// ParseID reads the ID of a token from itself or from the whole token.
func ParseID(text string) (string, error) {
	if bootstraputil.IsValidBootstrapTokenID(text) {
		return text, nil
	}
	if token, err := Parse(text); err == nil {
		return token.ID, nil
	}
	return "", errors.New("given token didn't match pattern [a-z0-9]{6} of the ID of a token, nor [a-z0-9]{6}.[a-z0-9]{16} of a token")
}

// Validate says what is wrong with a token that is to be made.
func (t Token) Validate() error {
	if err := bootstraputil.ValidateUsages(t.Usages); err != nil {
		return fmt.Errorf("usages %s: choose of %s", strings.Join(t.Usages, ","), strings.Join(bootstrapapi.KnownTokenUsages, ", "))
	}
	for _, group := range t.Groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return fmt.Errorf("group %q: groups of tokens begin with %s: and go on with a-z, 0-9, : and -", group, bootstrapapi.BootstrapDefaultGroup)
		}
	}
	return nil
}

// Create stores a token in the control plane and returns it.
func Create(ctx context.Context, karmada *rest.Config, token Token) (Token, error) {
	if len(token.Usages) == 0 {
		token.Usages = []string{Signing, Authentication}
	}
	if len(token.Groups) == 0 {
		token.Groups = []string{agent.BootstrapGroup}
	}
	if err := token.Validate(); err != nil {
		return Token{}, err
	}
	secrets, err := open(karmada)
	if err != nil {
		return Token{}, err
	}
	random := token.ID == ""
	for range createAttempts {
		made := token
		if random {
			text, err := bootstraputil.GenerateBootstrapToken()
			if err != nil {
				return Token{}, fmt.Errorf("choosing a token: %w", err)
			}
			made.ID, made.Secret, _ = strings.Cut(text, ".")
		}
		_, err := secrets.Create(ctx, made.object(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && random {
			continue
		}
		if err != nil {
			return Token{}, fmt.Errorf("creating Secret %s/%s in the control plane (%s): %w", metav1.NamespaceSystem, made.object().Name, karmada.Host, err)
		}
		return made, nil
	}
	return Token{}, fmt.Errorf("%d IDs at random were all taken: delete tokens that nobody needs", createAttempts)
}

// List returns the tokens of the control plane, and an error for each Secret of
// their kind that holds none.
func List(ctx context.Context, karmada *rest.Config) (tokens []Token, malformed []error, err error) {
	secrets, err := open(karmada)
	if err != nil {
		return nil, nil, err
	}
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(bootstrapapi.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing tokens in the control plane (%s): %w", karmada.Host, err)
	}
	for i := range list.Items {
		token, err := read(&list.Items[i])
		if err != nil {
			malformed = append(malformed, fmt.Errorf("secret %s/%s: %w", list.Items[i].Namespace, list.Items[i].Name, err))
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, malformed, nil
}

// Delete deletes the token with that ID.
func Delete(ctx context.Context, karmada *rest.Config, id string) error {
	secrets, err := open(karmada)
	if err != nil {
		return err
	}
	err = secrets.Delete(ctx, bootstraputil.BootstrapTokenSecretName(id), metav1.DeleteOptions{})
	if err != nil {
		// Clients look for "err: " and the message of the API server behind it.
		return fmt.Errorf("deleting bootstrap token %q in the control plane (%s), err: %w", id, karmada.Host, err)
	}
	return nil
}

func open(karmada *rest.Config) (corev1client.SecretInterface, error) {
	client, err := corev1client.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("making a client of the control plane (%s): %w", karmada.Host, err)
	}
	return client.Secrets(metav1.NamespaceSystem), nil
}

// object is the Secret that holds the token.
func (t Token) object() *corev1.Secret {
	data := map[string][]byte{
		bootstrapapi.BootstrapTokenIDKey:          []byte(t.ID),
		bootstrapapi.BootstrapTokenSecretKey:      []byte(t.Secret),
		bootstrapapi.BootstrapTokenExtraGroupsKey: []byte(strings.Join(t.Groups, ",")),
	}
	if t.Description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = []byte(t.Description)
	}
	if !t.Expires.IsZero() {
		data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(t.Expires.UTC().Format(time.RFC3339))
	}
	for _, usage := range t.Usages {
		data[bootstrapapi.BootstrapTokenUsagePrefix+usage] = []byte("true")
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(t.ID)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data:       data,
	}
}

// read reads the token out of its Secret.
func read(secret *corev1.Secret) (Token, error) {
	value := func(key string) string { return string(secret.Data[key]) }
	token, err := Parse(value(bootstrapapi.BootstrapTokenIDKey) + "." + value(bootstrapapi.BootstrapTokenSecretKey))
	if err != nil {
		return Token{}, fmt.Errorf("%s and %s: %w", bootstrapapi.BootstrapTokenIDKey, bootstrapapi.BootstrapTokenSecretKey, err)
	}
	if secret.Name != bootstraputil.BootstrapTokenSecretName(token.ID) {
		return Token{}, fmt.Errorf("it is not called after its %s %s, so it does not count", bootstrapapi.BootstrapTokenIDKey, token.ID)
	}
	if expiration := value(bootstrapapi.BootstrapTokenExpirationKey); expiration != "" {
		if token.Expires, err = time.Parse(time.RFC3339, expiration); err != nil {
			return Token{}, fmt.Errorf("%s %q is no time as in 2006-01-02T15:04:05Z", bootstrapapi.BootstrapTokenExpirationKey, expiration)
		}
	}
	for _, usage := range bootstrapapi.KnownTokenUsages {
		if value(bootstrapapi.BootstrapTokenUsagePrefix+usage) == "true" {
			token.Usages = append(token.Usages, usage)
		}
	}
	if groups := value(bootstrapapi.BootstrapTokenExtraGroupsKey); groups != "" {
		token.Groups = strings.Split(groups, ",")
	}
	token.Description = value(bootstrapapi.BootstrapTokenDescriptionKey)
	return token, nil
}
