// Package bootstraptoken creates and verifies the tokens with which new clusters register. The
// cluster presents a short-lived token that an administrator created for it. It verifies the
// control plane by the hash of its certificate authority. The administrator gets this hash
// together with the token.
//
// A token is a Secret of type bootstrap.kubernetes.io/token in kube-system. Other tools use the
// same type, so this package also lists their tokens, and they list the tokens of this package.
package bootstraptoken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// DefaultTTL is the lifetime of a token if none is given.
const DefaultTTL = 24 * time.Hour

// The usages of a token.
const (
	// UsageSigning allows the token to sign cluster-info. The signature proves that cluster-info
	// comes from the control plane.
	UsageSigning = "signing"
	// UsageAuthentication allows the token to authenticate requests to the API server.
	UsageAuthentication = "authentication"
)

// createAttempts is the number of random IDs that Create tries.
const createAttempts = 5

// Token is a bootstrap token.
type Token struct {
	// ID is the public part and Secret the secret part of the token. If they are empty, Create
	// generates them.
	ID, Secret string
	// Expires is the expiration time. The zero time means never.
	Expires time.Time
	// Usages are the allowed usages. Empty means all.
	Usages []string
	// Groups are the groups of a user that authenticates with the token. Empty means the group that
	// may register clusters.
	Groups []string
	// Description is free text for the user.
	Description string
	// Scope limits which clusters can be registered with the token. It may be empty.
	Scope agent.Scope
}

// String returns the token in the form id.secret.
func (t Token) String() string { return bootstraputil.TokenFromIDAndSecret(t.ID, t.Secret) }

// Parse parses a token: six characters, a dot and sixteen characters, all of a-z and 0-9.
func Parse(text string) (Token, error) {
	if !bootstraputil.IsValidBootstrapToken(text) {
		return Token{}, errors.New("a token is six characters, a dot and sixteen characters, all of a-z and 0-9")
	}
	id, secret, _ := strings.Cut(text, ".")
	return Token{ID: id, Secret: secret}, nil
}

// ParseID returns the ID of a token. text is the ID or the whole token.
func ParseID(text string) (string, error) {
	if bootstraputil.IsValidBootstrapTokenID(text) {
		return text, nil
	}
	if token, err := Parse(text); err == nil {
		return token.ID, nil
	}
	return "", errors.New("given token didn't match pattern [a-z0-9]{6} of the ID of a token, nor [a-z0-9]{6}.[a-z0-9]{16} of a token")
}

// Validate returns an error if the token is not valid for Create.
func (t Token) Validate() error {
	if err := bootstraputil.ValidateUsages(t.Usages); err != nil {
		return fmt.Errorf("usages %s: choose from %s", strings.Join(t.Usages, ","), strings.Join(bootstrapapi.KnownTokenUsages, ", "))
	}
	for _, group := range t.Groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return fmt.Errorf("group %q: a group must begin with %s: followed by a-z, 0-9, : and -", group, bootstrapapi.BootstrapDefaultGroup)
		}
	}
	return t.Scope.Validate()
}

// Create stores a token in the control plane and returns it.
func Create(ctx context.Context, karmada *rest.Config, token Token) (Token, error) {
	if len(token.Usages) == 0 {
		token.Usages = []string{UsageSigning, UsageAuthentication}
	}
	if len(token.Groups) == 0 {
		token.Groups = []string{agent.BootstrapGroup}
	}
	if !token.Scope.IsEmpty() && !slices.Contains(token.Groups, agent.ScopedGroup) {
		token.Groups = append(slices.Clone(token.Groups), agent.ScopedGroup)
	}
	if err := token.Validate(); err != nil {
		return Token{}, err
	}
	secrets, err := newSecretClient(karmada)
	if err != nil {
		return Token{}, err
	}
	random := token.ID == ""
	for range createAttempts {
		created := token
		if random {
			text, err := bootstraputil.GenerateBootstrapToken()
			if err != nil {
				return Token{}, fmt.Errorf("generating a token: %w", err)
			}
			created.ID, created.Secret, _ = strings.Cut(text, ".")
		}
		_, err := secrets.Create(ctx, created.newSecret(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && random {
			continue
		}
		if err != nil {
			return Token{}, fmt.Errorf("creating Secret %s/%s in the control plane (%s): %w", metav1.NamespaceSystem, created.newSecret().Name, karmada.Host, err)
		}
		return created, nil
	}
	return Token{}, fmt.Errorf("%d random IDs were all in use: delete tokens that are no longer needed", createAttempts)
}

// List returns the tokens of the control plane, and one error for each token Secret that
// cannot be parsed.
func List(ctx context.Context, karmada *rest.Config) (tokens []Token, malformed []error, err error) {
	secrets, err := newSecretClient(karmada)
	if err != nil {
		return nil, nil, err
	}
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(bootstrapapi.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing tokens in the control plane (%s): %w", karmada.Host, err)
	}
	for i := range list.Items {
		token, err := parseSecret(&list.Items[i])
		if err != nil {
			malformed = append(malformed, fmt.Errorf("secret %s/%s: %w", list.Items[i].Namespace, list.Items[i].Name, err))
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, malformed, nil
}

// Delete deletes the token with the ID.
func Delete(ctx context.Context, karmada *rest.Config, id string) error {
	secrets, err := newSecretClient(karmada)
	if err != nil {
		return err
	}
	err = secrets.Delete(ctx, bootstraputil.BootstrapTokenSecretName(id), metav1.DeleteOptions{})
	if err != nil {
		// Clients search this message for "err: ". The text after it is the message of the API
		// server.
		return fmt.Errorf("deleting bootstrap token %q in the control plane (%s), err: %w", id, karmada.Host, err)
	}
	return nil
}

// newSecretClient returns the client of the Secrets in kube-system.
func newSecretClient(karmada *rest.Config) (corev1client.SecretInterface, error) {
	client, err := corev1client.NewForConfig(karmada)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane (%s): %w", karmada.Host, err)
	}
	return client.Secrets(metav1.NamespaceSystem), nil
}

// newSecret returns the Secret that stores the token.
func (t Token) newSecret() *corev1.Secret {
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
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(t.ID)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data:       data,
	}
	if !t.Scope.IsEmpty() {
		secret.Annotations = map[string]string{clusterv1alpha1.RegistrationScopeAnnotation: t.Scope.Encode()}
	}
	return secret
}

// parseSecret parses the token in a Secret.
func parseSecret(secret *corev1.Secret) (Token, error) {
	value := func(key string) string { return string(secret.Data[key]) }
	token, err := Parse(value(bootstrapapi.BootstrapTokenIDKey) + "." + value(bootstrapapi.BootstrapTokenSecretKey))
	if err != nil {
		return Token{}, fmt.Errorf("%s and %s: %w", bootstrapapi.BootstrapTokenIDKey, bootstrapapi.BootstrapTokenSecretKey, err)
	}
	if secret.Name != bootstraputil.BootstrapTokenSecretName(token.ID) {
		return Token{}, fmt.Errorf("its name does not match its %s %s, so the API server ignores it", bootstrapapi.BootstrapTokenIDKey, token.ID)
	}
	if expiration := value(bootstrapapi.BootstrapTokenExpirationKey); expiration != "" {
		if token.Expires, err = time.Parse(time.RFC3339, expiration); err != nil {
			return Token{}, fmt.Errorf("%s %q is not a time of the form 2006-01-02T15:04:05Z", bootstrapapi.BootstrapTokenExpirationKey, expiration)
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
	if token.Scope, err = agent.ParseScope(secret.Annotations[clusterv1alpha1.RegistrationScopeAnnotation]); err != nil {
		return Token{}, err
	}
	return token, nil
}
