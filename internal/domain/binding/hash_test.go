package binding

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestShortHash(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"a namespaced binding reference": {"default/nginx-deployment", "5bdc5c4dcf"},
		"a work of a Deployment":         {"default-nginx-deployment", "687f7fb96f"},
		"a work of a Namespace":          {"foo-namespace", "5dbdc7b59c"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ShortHash(tc.in); got != tc.want {
				t.Errorf("ShortHash(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestSum32IsFNV1a(t *testing.T) {
	// The offset basis and the published hash of "a".
	if got := Hash32(""); got != 0x811c9dc5 {
		t.Errorf("Hash32 of nothing = %#x", got)
	}
	if got := Hash32("a"); got != 0xe40c292c {
		t.Errorf("Hash32 of %q = %#x", "a", got)
	}
}

func FuzzShortHash(f *testing.F) {
	f.Add("")
	f.Add("default/nginx")
	f.Fuzz(func(t *testing.T, in string) {
		got := ShortHash(in)
		if problems := validation.IsDNS1123Label(got); len(problems) > 0 {
			t.Errorf("ShortHash(%q) = %q is no DNS label: %v", in, got, problems)
		}
		if strings.Trim(got, "456789bcdf") != "" {
			t.Errorf("ShortHash(%q) = %q uses a character no digit maps to", in, got)
		}
	})
}
