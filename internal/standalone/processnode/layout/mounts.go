package layout

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mount is a path that a container would see, and where it really is.
type mount struct{ path, source string }

// Mounts lead from what a container would see to the files of the machine. Those of
// longer paths come first.
type Mounts []mount

func newMounts(all ...mount) Mounts {
	sorted := make(Mounts, 0, len(all))
	for _, m := range all {
		sorted = append(sorted, mount{path: path.Clean("/" + m.path), source: m.source})
	}
	slices.SortStableFunc(sorted, func(a, b mount) int { return cmp.Compare(len(b.path), len(a.path)) })
	return sorted
}

// Source is where what is mounted at a path really is.
func (m Mounts) Source(path string) (source string, ok bool) {
	for _, candidate := range m {
		if candidate.path == path {
			return candidate.source, true
		}
	}
	return "", false
}

// rewrite replaces every path below a mount path, wherever it stands in the text: as
// all of it, as the value of a flag, or in a list.
func (m Mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if found, ok := m.at(text, i); ok {
			out.WriteString(found.source)
			i += len(found.path)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// at is the mount whose path begins at a place of the text: a path begins where
// nothing of a name precedes, and ends where its last name does.
func (m Mounts) at(text string, i int) (mount, bool) {
	if text[i] != '/' || i > 0 && (ofName(text[i-1]) || text[i-1] == '/') {
		return mount{}, false
	}
	for _, candidate := range m {
		rest, ok := strings.CutPrefix(text[i:], candidate.path)
		if ok && (rest == "" || !ofName(rest[0])) {
			return candidate, true
		}
	}
	return mount{}, false
}

// ofName reports whether a byte may belong to the name of a file. Those that lists
// and flags are written with do not.
func ofName(b byte) bool {
	switch {
	case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b >= 0x80:
		return true
	default:
		return strings.IndexByte("._-+~@%#", b) >= 0
	}
}

// below joins a relative path to a directory and reports whether it stays there.
func below(dir, relative string) (string, bool) {
	if !filepath.IsLocal(relative) {
		return "", false
	}
	return filepath.Join(dir, relative), true
}
