package atrest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/pki"
)

// keyBytes is the length of a key of secretbox.
const keyBytes = 32

// keyPrefix begins the names of our keys. The rest is the beginning of the hash of
// the key, which tells a damaged key from a good one.
const keyPrefix = "key-"

const preface = `# The key that encrypts the Secrets of this cluster where they are stored. Without it
# they cannot be read: keep a copy apart from the data.
`

func keyName(key []byte) string {
	sum := sha256.Sum256(key)
	return keyPrefix + hex.EncodeToString(sum[:8])
}

// generate writes a file with a new key.
func generate(path string) error {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("generating the key that encrypts Secrets: %w", err)
	}
	configuration := apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{{Name: keyName(key), Secret: base64.StdEncoding.EncodeToString(key)}}}},
				// What was stored before there was a key is read as it is.
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("encoding the file with the key that encrypts Secrets: %w", err)
	}
	return pki.WriteFile(path, append([]byte(preface), text...), 0o600)
}

var (
	errFirst  = errors.New("its first provider must be secretbox, or new Secrets are stored as they are")
	errKey    = errors.New("a key is not what its name says")
	errLength = errors.New("a key must have 32 bytes")
)

// readKeys returns the names of the keys in a file. Errors do not quote it.
func readKeys(path string) (names []string, missing bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading it: %w", err)
	}
	names, err = parseKeys(text)
	return names, false, err
}

var errSyntax = errors.New("it is no EncryptionConfiguration for Secrets")

func parseKeys(text []byte) (names []string, err error) {
	var configuration apiserverv1.EncryptionConfiguration
	if yaml.UnmarshalStrict(text, &configuration) != nil {
		return nil, errSyntax // The cause may quote a key.
	}
	for _, resource := range configuration.Resources {
		if !slices.Contains(resource.Resources, "secrets") {
			continue
		}
		if len(resource.Providers) == 0 || resource.Providers[0].Secretbox == nil || len(resource.Providers[0].Secretbox.Keys) == 0 {
			return nil, errFirst
		}
		for _, provider := range resource.Providers {
			if provider.Secretbox == nil {
				continue
			}
			for _, key := range provider.Secretbox.Keys {
				if err := checkKey(key); err != nil {
					return nil, err
				}
				names = append(names, key.Name)
			}
		}
		return names, nil
	}
	return nil, errSyntax
}

func checkKey(key apiserverv1.Key) error {
	secret, err := base64.StdEncoding.DecodeString(key.Secret)
	if err != nil || len(secret) != keyBytes {
		return errLength
	}
	if strings.HasPrefix(key.Name, keyPrefix) && key.Name != keyName(secret) {
		return errKey
	}
	return nil
}
