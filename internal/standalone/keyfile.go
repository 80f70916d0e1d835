package standalone

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/pki"
)

// keyBytes is the length of a secretbox key.
const keyBytes = 32

// keyPrefix begins the names of generated keys. The beginning of the key's hash follows, so that a damaged
// key is detected.
const keyPrefix = "key-"

const keyFileHeader = `# The key that encrypts the Secrets and Works of this cluster in etcd.
# Without the key they cannot be read: keep a copy apart from the data.
`

func keyName(key []byte) string {
	sum := sha256.Sum256(key)
	return keyPrefix + hex.EncodeToString(sum[:8])
}

// generateKeyFile writes a key file with a new key.
func generateKeyFile(path string) error {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("generating the key that encrypts Secrets: %w", err)
	}
	configuration := apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: resourceNames(),
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{{Name: keyName(key),
					Secret: base64.StdEncoding.EncodeToString(key)}}}},
				// Values that were stored before there was a key are read as plain text.
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	}
	return writeKeyFile(path, configuration)
}

func writeKeyFile(path string, configuration apiserverv1.EncryptionConfiguration) error {
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("encoding the encryption key file: %w", err)
	}
	return pki.WriteFile(path, append([]byte(keyFileHeader), text...), 0o600)
}

// resourceNames returns the names of the encrypted kinds in the format of an EncryptionConfiguration.
func resourceNames() []string {
	names := make([]string, len(encryptedKinds))
	for i, kind := range encryptedKinds {
		names[i] = kind.resource.String()
	}
	return names
}

var (
	errFirstProvider   = errors.New("the first provider must be secretbox, or new Secrets and Works are stored unencrypted")
	errKeyNameMismatch = errors.New("a key does not match its name")
	errKeyLength       = errors.New("a key must have 32 bytes in base64")
)

// keyFile is a file with encryption keys.
type keyFile struct {
	path          string
	configuration apiserverv1.EncryptionConfiguration
	// keyNames are the names of the keys.
	keyNames []string
	// missing is true if the file does not exist.
	missing bool
	// uncoveredResources are the resources that must be encrypted, but that the configuration does
	// not list, because an earlier release wrote it.
	uncoveredResources []string
}

// readKeyFile reads a key file. Errors do not quote its content.
func readKeyFile(path string) (keyFile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keyFile{path: path, missing: true}, nil
	}
	if err != nil {
		return keyFile{path: path}, fmt.Errorf("reading the encryption key file: %w", err)
	}
	file, err := parseKeyFile(text)
	file.path = path
	return file, err
}

var errNotEncryptionConfig = errors.New("the file is not an EncryptionConfiguration for Secrets")

func parseKeyFile(text []byte) (file keyFile, err error) {
	if yaml.UnmarshalStrict(text, &file.configuration) != nil {
		return file, errNotEncryptionConfig // The cause may quote a key.
	}
	for _, kind := range encryptedKinds {
		entry := resourceEntry(file.configuration, kind.resource)
		switch {
		case entry == nil && kind.resource == encryptedKinds[0].resource:
			return file, errNotEncryptionConfig
		case entry == nil:
			file.uncoveredResources = append(file.uncoveredResources, kind.resource.String())
			continue
		}
		names, err := providerKeyNames(entry.Providers)
		if err != nil {
			return file, err
		}
		file.keyNames = append(file.keyNames, names...)
	}
	slices.Sort(file.keyNames)
	file.keyNames = slices.Compact(file.keyNames)
	return file, nil
}

// coverAllResources adds the uncovered resources to the entry that encrypts Secrets, so that the API server
// encrypts all of them with the same keys.
func (k keyFile) coverAllResources() error {
	secrets := resourceEntry(k.configuration, encryptedKinds[0].resource)
	secrets.Resources = append(secrets.Resources, k.uncoveredResources...)
	return writeKeyFile(k.path, k.configuration)
}

// resourceEntry returns the configuration's entry for a resource, or nil if there is none.
func resourceEntry(configuration apiserverv1.EncryptionConfiguration, resource schema.GroupResource) *apiserverv1.ResourceConfiguration {
	for i, entry := range configuration.Resources {
		for _, name := range entry.Resources {
			if name == resource.String() || name == "*."+resource.Group || name == "*.*" {
				return &configuration.Resources[i]
			}
		}
	}
	return nil
}

// providerKeyNames validates the providers' keys and returns the keys' names.
func providerKeyNames(providers []apiserverv1.ProviderConfiguration) (names []string, err error) {
	if len(providers) == 0 || providers[0].Secretbox == nil || len(providers[0].Secretbox.Keys) == 0 {
		return nil, errFirstProvider
	}
	for _, provider := range providers {
		if provider.Secretbox == nil {
			continue
		}
		for _, key := range provider.Secretbox.Keys {
			if err := validateKey(key); err != nil {
				return nil, err
			}
			names = append(names, key.Name)
		}
	}
	return names, nil
}

func validateKey(key apiserverv1.Key) error {
	secret, err := base64.StdEncoding.DecodeString(key.Secret)
	if err != nil || len(secret) != keyBytes {
		return errKeyLength
	}
	if strings.HasPrefix(key.Name, keyPrefix) && key.Name != keyName(secret) {
		return errKeyNameMismatch
	}
	return nil
}
