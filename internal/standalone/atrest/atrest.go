// Package atrest answers "with which key are the Secrets of this store encrypted, and
// may an API server start with it?". Works are encrypted as well: the manifests in them
// are copies of the Secrets that are propagated.
//
// Invariants:
//   - A key is made only while the store holds no encrypted value. What is stored
//     decides, not a mark beside it: a store that came back from a backup counts.
//   - An API server does not start with a key that cannot read what is stored.
//   - Keys are in no log, error or event; their names, which are stored beside each
//     value, say nothing about them.
package atrest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// confidential are the kinds that are encrypted, and where an API server stores them.
var confidential = []struct {
	resource schema.GroupResource
	prefix   string
}{
	{schema.GroupResource{Resource: "secrets"}, "/registry/secrets/"},
	{schema.GroupResource{Group: workv1alpha1.GroupName, Resource: workv1alpha1.ResourcePluralWork}, "/registry/" + workv1alpha1.GroupName + "/" + workv1alpha1.ResourcePluralWork + "/"},
}

// Stored is what a store says about its Secrets and Works.
type Stored struct {
	// Encrypted counts those that are encrypted, by the name of the key.
	Encrypted map[string]int
	// Plain lists the keys in the store of those that are not.
	Plain []string
}

func (s Stored) encrypted() int {
	count := 0
	for _, values := range s.Encrypted {
		count += values
	}
	return count
}

// add takes one value of the store into account.
func (s *Stored) add(key string, value []byte) {
	keyName, encrypted := keyNameOf(value)
	if !encrypted {
		s.Plain = append(s.Plain, key)
		return
	}
	if s.Encrypted == nil {
		s.Encrypted = map[string]int{}
	}
	s.Encrypted[keyName]++
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
// start, and whether it needs a new key. err is not nil if the file cannot be used.
// startOver says what a user without the key can do.
func decide(file keyFile, err error, stored Stored, startOver string) (generate bool, _ error) {
	count := stored.encrypted()
	switch {
	case err != nil && count == 0:
		return false, fmt.Errorf("%s: %w: %w: nothing is encrypted with it, remove the file and start again", file.path, errDamaged, err)
	case err != nil:
		return false, fmt.Errorf("%s: %w: %w: %s", file.path, errDamaged, err, lost(count, startOver))
	case file.missing && count == 0:
		return true, nil
	case file.missing:
		return false, fmt.Errorf("%s: %w: %s", file.path, errMissing, lost(count, startOver))
	}
	unreadable, unknown := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(stored.Encrypted)) {
		if !slices.Contains(file.names, name) {
			unreadable, unknown = unreadable+stored.Encrypted[name], append(unknown, name)
		}
	}
	if unreadable > 0 {
		return false, fmt.Errorf("%s: %w than %s: %s", file.path, errOther, strings.Join(unknown[:min(len(unknown), maxNames)], ", "), lost(unreadable, startOver))
	}
	return false, nil
}

// maxNames bounds the names of keys in an error.
const maxNames = 3

// lost says what cannot be read without the key, and how to go on.
func lost(values int, startOver string) string {
	return fmt.Sprintf("without the key the %d Secrets and Works that are encrypted with it cannot be read, which are the credentials of clusters and tokens among others; everything else can. "+
		"Put the file back from a copy or a backup. If there is none, %s", values, startOver)
}
