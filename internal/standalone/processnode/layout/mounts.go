package layout

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mount maps a path in the container to its source on the machine.
type mount struct{ path, source string }

// Mounts maps paths in the container to paths on the machine. Longer container paths come first.
type Mounts []mount

func newMounts(all ...mount) Mounts {
	sorted := make(Mounts, 0, len(all))
	for _, m := range all {
		sorted = append(sorted, mount{path: path.Clean("/" + m.path), source: m.source})
	}
	slices.SortStableFunc(sorted, func(a, b mount) int { return cmp.Compare(len(b.path), len(a.path)) })
	return sorted
}

// Source returns the path on the machine for the mount at a path in the container.
func (m Mounts) Source(path string) (source string, ok bool) {
	for _, candidate := range m {
		if candidate.path == path {
			return candidate.source, true
		}
	}
	return "", false
}

// rewrite replaces every path in the text that is equal to or below a mount path. The path may be the whole
// text, a flag's value, or a list element.
func (m Mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if found, ok := m.mountAt(text, i); ok {
			out.WriteString(found.source)
			i += len(found.path)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// mountAt returns the mount whose path starts at index i of the text. A file name must neither
// precede the path nor continue after its last element.
func (m Mounts) mountAt(text string, i int) (mount, bool) {
	if text[i] != '/' || i > 0 && (isNameByte(text[i-1]) || text[i-1] == '/') {
		return mount{}, false
	}
	for _, candidate := range m {
		rest, ok := strings.CutPrefix(text[i:], candidate.path)
		if ok && (rest == "" || !isNameByte(rest[0])) {
			return candidate, true
		}
	}
	return mount{}, false
}

// isNameByte reports whether a byte may be part of a file name. Separators of lists and of flag
// values may not.
func isNameByte(b byte) bool {
	switch {
	case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b >= 0x80:
		return true
	default:
		return strings.IndexByte("._-+~@%#", b) >= 0
	}
}

// joinBelow joins a relative path to a directory and reports whether the result is in the
// directory.
func joinBelow(dir, relative string) (string, bool) {
	if !filepath.IsLocal(relative) {
		return "", false
	}
	return filepath.Join(dir, relative), true
}
