package registration

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

// DefaultTokenTTL is a token's default lifetime.
const DefaultTokenTTL = 24 * time.Hour

// Usages of a token.
const (
	// UsageSigning lets the token sign cluster-info. The signature proves that cluster-info comes from the
	// control plane.
	UsageSigning = "signing"
	// UsageAuthentication lets the token authenticate requests to the API server.
	UsageAuthentication = "authentication"
)

// maxTokenIDAttempts limits the random IDs that CreateToken tries.
const maxTokenIDAttempts = 5

// Token is a bootstrap token, with which a new cluster registers. An administrator creates the token and
// passes it to the cluster, together with a Pin, by which the cluster verifies the control plane.
//
// A token is stored as a Secret of the type bootstrap.kubernetes.io/token in kube-system. Other tools use
// the same type, so ListTokens also returns their tokens.
type Token struct {
	// ID is the token's public part, and Secret its secret part. If they are empty, CreateToken generates
	// them.
	ID, Secret string
	// Expires is the expiration time. If it is zero, the token does not expire.
	Expires time.Time
	// Usages are the allowed usages. If it is empty, CreateToken allows all.
	Usages []string
	// Groups are the groups of a user that authenticates with the token. If it is empty, CreateToken uses the
	// group that may register clusters.
	Groups []string
	// Description is a text for users.
	Description string
	// Scope limits the clusters that can be registered with the token. It may be empty.
	Scope agent.Scope
}

// String returns the token as <ID>.<secret>.
func (t Token) String() string { return bootstraputil.TokenFromIDAndSecret(t.ID, t.Secret) }

// ParseToken parses a token: six characters, a dot and sixteen characters, all of them a-z or 0-9.
func ParseToken(text string) (Token, error) {
	if !bootstraputil.IsValidBootstrapToken(text) {
		return Token{}, errors.New("a token is six characters, a dot and sixteen characters, all of a-z and 0-9")
	}
	id, secret, _ := strings.Cut(text, ".")
	return Token{ID: id, Secret: secret}, nil
}

// ParseTokenID returns a token's ID. text is either the ID or the whole token.
func ParseTokenID(text string) (string, error) {
	if bootstraputil.IsValidBootstrapTokenID(text) {
		return text, nil
	}
	if token, err := ParseToken(text); err == nil {
		return token.ID, nil
	}
	return "", errors.New("given token didn't match pattern [a-z0-9]{6} of the ID of a token, nor [a-z0-9]{6}.[a-z0-9]{16} of a token")
}

// Validate returns an error if CreateToken would reject the token.
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

// CreateToken stores a token in the control plane and returns it with its defaults and generated parts.
func CreateToken(ctx context.Context, karmada *rest.Config, token Token) (Token, error) {
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
	secrets, err := newTokenSecretClient(karmada)
	if err != nil {
		return Token{}, err
	}
	random := token.ID == ""
	for range maxTokenIDAttempts {
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
			return Token{}, fmt.Errorf("creating Secret %s/%s in the control plane (%s): %w", metav1.NamespaceSystem, created.newSecret().Name,
				karmada.Host, err)
		}
		return created, nil
	}
	return Token{}, fmt.Errorf("%d random IDs were all in use: delete tokens that are no longer needed", maxTokenIDAttempts)
}

// ListTokens returns the control plane's tokens, and an error for each token Secret that cannot be parsed.
func ListTokens(ctx context.Context, karmada *rest.Config) (tokens []Token, malformed []error, err error) {
	secrets, err := newTokenSecretClient(karmada)
	if err != nil {
		return nil, nil, err
	}
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(bootstrapapi.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing tokens in the control plane (%s): %w", karmada.Host, err)
	}
	for i := range list.Items {
		token, err := parseTokenSecret(&list.Items[i])
		if err != nil {
			malformed = append(malformed, fmt.Errorf("secret %s/%s: %w", list.Items[i].Namespace, list.Items[i].Name, err))
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, malformed, nil
}

// DeleteToken deletes the token with the given ID.
func DeleteToken(ctx context.Context, karmada *rest.Config, id string) error {
	secrets, err := newTokenSecretClient(karmada)
	if err != nil {
		return err
	}
	err = secrets.Delete(ctx, bootstraputil.BootstrapTokenSecretName(id), metav1.DeleteOptions{})
	if err != nil {
		// Scripts search this message for "err: ", which the API server's message follows.
		return fmt.Errorf("deleting bootstrap token %q in the control plane (%s), err: %w", id, karmada.Host, err)
	}
	return nil
}

// newTokenSecretClient returns a client for the Secrets in kube-system.
func newTokenSecretClient(karmada *rest.Config) (corev1client.SecretInterface, error) {
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

// parseTokenSecret returns the token that the Secret stores.
func parseTokenSecret(secret *corev1.Secret) (Token, error) {
	value := func(key string) string { return string(secret.Data[key]) }
	token, err := ParseToken(value(bootstrapapi.BootstrapTokenIDKey) + "." + value(bootstrapapi.BootstrapTokenSecretKey))
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
