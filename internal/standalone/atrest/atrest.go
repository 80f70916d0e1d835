// Package atrest answers "with which key are the Secrets of this store encrypted, and
// may an API server start with it?".
//
// Invariants:
//   - A key is made only while the store holds no encrypted Secret. What is stored
//     decides, not a mark beside it: a store that came back from a backup counts.
//   - An API server does not start with a key that cannot read what is stored.
//   - Keys are in no log, error or event; their names, which are stored beside each
//     Secret, say nothing about them.
package atrest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Stored is what a store says about its Secrets.
type Stored struct {
	// Encrypted counts the Secrets that are encrypted, by the name of the key.
	Encrypted map[string]int
	// Plain lists the Secrets that are not.
	Plain []types.NamespacedName
}

func (s Stored) encrypted() int {
	count := 0
	for _, secrets := range s.Encrypted {
		count += secrets
	}
	return count
}

// add takes one Secret of the store into account.
func (s *Stored) add(key string, value []byte) error {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(key, secretsPrefix), "/")
	if !ok {
		return fmt.Errorf("reading key %q of the store: it is not that of a Secret", key)
	}
	keyName, encrypted := keyNameOf(value)
	if !encrypted {
		s.Plain = append(s.Plain, types.NamespacedName{Namespace: namespace, Name: name})
		return nil
	}
	if s.Encrypted == nil {
		s.Encrypted = map[string]int{}
	}
	s.Encrypted[keyName]++
	return nil
}

// encryptedPrefix begins every value that an API server has encrypted; then follow
// the provider, its version and the name of the key, each with a colon.
const encryptedPrefix = "k8s:enc:"

// keyNameOf returns the name of the key that a stored value is encrypted with.
func keyNameOf(value []byte) (name string, encrypted bool) {
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
	errMissing = errors.New("the file with the key is missing")
	errDamaged = errors.New("the file with the key is damaged")
	errOther   = errors.New("the file holds another key")
)

// decide returns the error with which a start must end, nil if the API server may
// start, and whether it needs a new key. found are the names of the keys in the file;
// err is os.ErrNotExist without a file, and anything else if it cannot be used.
func decide(path string, found []string, missing bool, err error, stored Stored) (generate bool, _ error) {
	count := stored.encrypted()
	switch {
	case err != nil && count == 0:
		return false, fmt.Errorf("%s: %w: %w: nothing is encrypted with it, remove the file and start again", path, errDamaged, err)
	case err != nil:
		return false, fmt.Errorf("%s: %w: %w: %s", path, errDamaged, err, lost(count))
	case missing && count == 0:
		return true, nil
	case missing:
		return false, fmt.Errorf("%s: %w: %s", path, errMissing, lost(count))
	}
	unreadable, unknown := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(stored.Encrypted)) {
		if !slices.Contains(found, name) {
			unreadable, unknown = unreadable+stored.Encrypted[name], append(unknown, name)
		}
	}
	if unreadable > 0 {
		return false, fmt.Errorf("%s: %w than %s: %s", path, errOther, strings.Join(unknown[:min(len(unknown), maxNames)], ", "), lost(unreadable))
	}
	return false, nil
}

// maxNames bounds the names of keys in an error.
const maxNames = 3

// lost says what cannot be read without the key, and how to go on.
func lost(secrets int) string {
	return fmt.Sprintf("without the key the %d Secrets that are encrypted with it cannot be read, which are the credentials of clusters and tokens among others; everything else can. "+
		"Put the file back from a backup. If there is none, start over with `karmada down --purge --force` and join the clusters again", secrets)
}
