package standalone

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// The key file encrypts Secrets in etcd, and Works, whose manifests may be copies of Secrets. Invariants:
//
//   - A key is generated only while etcd holds no encrypted value. The values in etcd are examined
//     instead of a marker file, so this also holds for an etcd that was restored from a backup.
//   - An API server does not start with a key that cannot decrypt the stored values.
//   - No log, error or event contains a key. etcd stores the key's name beside each value, but the name
//     does not reveal the key.

// encryptedKinds lists the kinds that are encrypted, with the prefix of their keys in etcd.
var encryptedKinds = []struct {
	resource schema.GroupResource
	prefix   string
}{
	{schema.GroupResource{Resource: "secrets"}, "/registry/secrets/"},
	{schema.GroupResource{Group: workv1alpha1.GroupName, Resource: workv1alpha1.ResourcePluralWork},
		"/registry/" + workv1alpha1.GroupName + "/" + workv1alpha1.ResourcePluralWork + "/"},
}

// storedValues describes how the Secrets and Works in etcd are stored.
type storedValues struct {
	// EncryptedByKey counts the encrypted values by the name of the encryption key.
	EncryptedByKey map[string]int
	// PlaintextKeys lists the etcd keys of the values that are not encrypted.
	PlaintextKeys []string
}

func (s storedValues) encryptedCount() int {
	count := 0
	for _, values := range s.EncryptedByKey {
		count += values
	}
	return count
}

// add counts one value of etcd.
func (s *storedValues) add(key string, value []byte) {
	keyName, encrypted := encryptionKeyName(value)
	if !encrypted {
		s.PlaintextKeys = append(s.PlaintextKeys, key)
		return
	}
	if s.EncryptedByKey == nil {
		s.EncryptedByKey = map[string]int{}
	}
	s.EncryptedByKey[keyName]++
}

// encryptedPrefix begins every value that an API server encrypted. The provider, its version and the key's
// name follow, separated by colons.
const encryptedPrefix = "k8s:enc:"

// encryptionKeyName returns the name of the key with which a stored value is encrypted.
func encryptionKeyName(value []byte) (name string, encrypted bool) {
	const header, words = 512, 4
	rest, encrypted := strings.CutPrefix(string(value[:min(len(value), header)]), encryptedPrefix)
	if !encrypted {
		return "", false
	}
	if parts := strings.SplitN(rest, ":", words); len(parts) == words {
		return parts[2], true
	}
	return "", true
}

var (
	errKeyFileMissing = errors.New("the encryption key file is missing")
	errKeyFileDamaged = errors.New("the encryption key file is damaged")
	errWrongKey       = errors.New("the encryption key file holds another key")
)

// decideKeyGeneration reports whether a new key must be generated, by comparing the key file with the
// stored values. It returns an error if the API server must not start. err is the error from reading the
// key file. startOver is the advice for a user who does not have the key.
func decideKeyGeneration(file keyFile, err error, stored storedValues, startOver string) (generate bool, _ error) {
	count := stored.encryptedCount()
	switch {
	case err != nil && count == 0:
		return false, fmt.Errorf("%s: %w: %w: no stored value is encrypted: remove the file and start again", file.path, errKeyFileDamaged, err)
	case err != nil:
		return false, fmt.Errorf("%s: %w: %w: %s", file.path, errKeyFileDamaged, err, keyLossMessage(count, startOver))
	case file.missing && count == 0:
		return true, nil
	case file.missing:
		return false, fmt.Errorf("%s: %w: %s", file.path, errKeyFileMissing, keyLossMessage(count, startOver))
	}
	unreadable, missingKeys := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(stored.EncryptedByKey)) {
		if !slices.Contains(file.keyNames, name) {
			unreadable, missingKeys = unreadable+stored.EncryptedByKey[name], append(missingKeys, name)
		}
	}
	if unreadable > 0 {
		return false, fmt.Errorf("%s: %w than %s: %s", file.path, errWrongKey,
			strings.Join(missingKeys[:min(len(missingKeys), maxNamesInError)], ", "), keyLossMessage(unreadable, startOver))
	}
	return false, nil
}

// maxNamesInError limits the number of key names in an error.
const maxNamesInError = 3

// keyLossMessage describes which data cannot be read without the key, and what the user can do.
func keyLossMessage(values int, startOver string) string {
	return fmt.Sprintf("without the key the %d Secrets and Works that are encrypted cannot be read, among them the credentials of clusters and tokens; all other objects can. "+
		"Restore the file from a copy or a backup. If there is none, %s", values, startOver)
}
