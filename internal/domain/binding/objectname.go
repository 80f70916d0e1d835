package binding

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NameWithSuffix returns the name of an object followed by a hyphen and the suffix, in lower case and
// with dots instead of colons, because RBAC names may contain colons. If that is not a valid name,
// for example for the RBAC name "a::b", a part of the name is replaced by a hash of the exact name.
func NameWithSuffix(name, suffix string) string {
	plain := strings.ToLower(strings.ReplaceAll(name, ":", "."))
	suffix = "-" + strings.ToLower(suffix)
	if len(validation.IsDNS1123Subdomain(plain+suffix)) == 0 {
		return plain + suffix
	}
	suffix = "-" + ShortHash(name) + suffix
	valid := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, plain)
	valid = strings.Trim(valid[:min(len(valid), validation.DNS1123SubdomainMaxLength-len(suffix))], "-")
	if valid == "" {
		return strings.TrimPrefix(suffix, "-")
	}
	return valid + suffix
}

// UnambiguousName returns a name for an object whose name of NameWithSuffix belongs to another object. It
// is that name followed by a dot and a hash of the exact identity. NameWithSuffix never returns it for
// a suffix without dots, because the text after its last dot contains no hyphen.
func UnambiguousName(name string, identity ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(identity, "/")))
	suffix := "." + hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))], "-.") + suffix
}
