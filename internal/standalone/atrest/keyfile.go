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
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/pki"
)

// keyBytes is the length of a key of secretbox.
const keyBytes = 32

// keyPrefix begins the names of our keys. The rest is the beginning of the hash of
// the key, which tells a damaged key from a good one.
const keyPrefix = "key-"

const preface = `# The key that encrypts the Secrets and Works of this cluster where they are stored.
# Without it they cannot be read: keep a copy apart from the data.
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
			Resources: resourceNames(),
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{{Name: keyName(key), Secret: base64.StdEncoding.EncodeToString(key)}}}},
				// What was stored before there was a key is read as it is.
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	}
	return write(path, configuration)
}

func write(path string, configuration apiserverv1.EncryptionConfiguration) error {
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("encoding the file with the key that encrypts Secrets: %w", err)
	}
	return pki.WriteFile(path, append([]byte(preface), text...), 0o600)
}

// resourceNames are the names in an EncryptionConfiguration of what is encrypted.
func resourceNames() []string {
	names := make([]string, len(confidential))
	for i, kind := range confidential {
		names[i] = kind.resource.String()
	}
	return names
}

var (
	errFirst  = errors.New("its first provider must be secretbox, or new Secrets and Works are stored as they are")
	errKey    = errors.New("a key is not what its name says")
	errLength = errors.New("a key must have 32 bytes")
)

// keyFile is a file with keys.
type keyFile struct {
	path          string
	configuration apiserverv1.EncryptionConfiguration
	// names are the names of its keys.
	names []string
	// missing says that there is no such file.
	missing bool
	// uncovered are the resources that an earlier release did not encrypt.
	uncovered []string
}

// readKeyFile reads a file with keys. Errors do not quote it.
func readKeyFile(path string) (keyFile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keyFile{path: path, missing: true}, nil
	}
	if err != nil {
		return keyFile{path: path}, fmt.Errorf("reading it: %w", err)
	}
	file, err := parseKeyFile(text)
	file.path = path
	return file, err
}

var errSyntax = errors.New("it is no EncryptionConfiguration for Secrets")

func parseKeyFile(text []byte) (file keyFile, err error) {
	if yaml.UnmarshalStrict(text, &file.configuration) != nil {
		return file, errSyntax // The cause may quote a key.
	}
	for _, kind := range confidential {
		entry := entryOf(file.configuration, kind.resource)
		switch {
		case entry == nil && kind.resource == confidential[0].resource:
			return file, errSyntax
		case entry == nil:
			file.uncovered = append(file.uncovered, kind.resource.String())
			continue
		}
		names, err := keysOf(entry.Providers)
		if err != nil {
			return file, err
		}
		file.names = append(file.names, names...)
	}
	slices.Sort(file.names)
	file.names = slices.Compact(file.names)
	return file, nil
}

// cover has the file encrypt what it leaves as it is: as it encrypts Secrets.
func (f keyFile) cover() error {
	secrets := entryOf(f.configuration, confidential[0].resource)
	secrets.Resources = append(secrets.Resources, f.uncovered...)
	return write(f.path, f.configuration)
}

// entryOf is what a configuration says about a resource, nil if nothing.
func entryOf(configuration apiserverv1.EncryptionConfiguration, resource schema.GroupResource) *apiserverv1.ResourceConfiguration {
	for i, entry := range configuration.Resources {
		for _, name := range entry.Resources {
			if name == resource.String() || name == "*."+resource.Group || name == "*.*" {
				return &configuration.Resources[i]
			}
		}
	}
	return nil
}

// keysOf returns the names of the keys of providers.
func keysOf(providers []apiserverv1.ProviderConfiguration) (names []string, err error) {
	if len(providers) == 0 || providers[0].Secretbox == nil || len(providers[0].Secretbox.Keys) == 0 {
		return nil, errFirst
	}
	for _, provider := range providers {
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
