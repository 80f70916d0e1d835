package processnode

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnImageHoldsTheProgramOfItsName(t *testing.T) {
	tests := map[string]struct {
		image, program string
		ours           bool
	}{
		"with registry and tag":         {"docker.io/karmada/karmada-agent:v1.2.3", "karmada-agent", true},
		"without anything":              {"karmada-agent", "karmada-agent", true},
		"from a registry with a port":   {"localhost:5000/karmada-webhook", "karmada-webhook", true},
		"with a digest":                 {"karmada/karmada-agent@sha256:abc", "karmada-agent", true},
		"with a tag and a digest":       {"karmada/karmada-agent:v1@sha256:abc", "karmada-agent", true},
		"of another name":               {"docker.io/library/nginx:1.19", "nginx", false},
		"of another name below karmada": {"docker.io/karmada/etcd:3.6", "etcd", false},
		"of a prefix and no more":       {"karmada-:v1", "karmada-", false},
		"of nothing":                    {"", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, ours := ProgramOf(test.image)
			if program != test.program || ours != test.ours {
				t.Errorf("%q holds %q, ours %t, want %q, %t", test.image, program, ours, test.program, test.ours)
			}
		})
	}
}

func TestAPodRunsIfAllItsImagesDo(t *testing.T) {
	tests := map[string]struct {
		images []string
		want   bool
	}{
		"one of ours":         {[]string{"karmada-agent"}, true},
		"two of ours":         {[]string{"karmada-agent", "karmada-search"}, true},
		"one among others":    {[]string{"karmada-agent", "nginx"}, false},
		"none":                {nil, false},
		"a directory's name":  {[]string{"karmada-io/agent"}, false},
		"ours with a sidecar": {[]string{"envoy", "karmada-agent"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Runs(test.images...); got != test.want {
				t.Errorf("%v: %t, want %t", test.images, got, test.want)
			}
		})
	}
}

func TestAProgramIsFoundInTheFirstDirectoryThatHasIt(t *testing.T) {
	none, text, first, second := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for dir, mode := range map[string]os.FileMode{text: 0o600, first: 0o700, second: 0o700} {
		if err := os.WriteFile(filepath.Join(dir, "karmada-agent"), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path, err := findIn("karmada-agent", []string{"", ".", none, text, first, second})
	if want := filepath.Join(first, "karmada-agent"); err != nil || path != want {
		t.Errorf("found %q (%v), want %q", path, err, want)
	}
	_, err = findIn("karmada-agent", []string{none, text})
	if !errors.Is(err, errNoProgram) || !strings.Contains(err.Error(), none) || !strings.Contains(err.Error(), text) {
		t.Errorf("the error %v does not tell that there is none in %s and %s", err, none, text)
	}
}
