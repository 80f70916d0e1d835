package atrest

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestAStartNeedsTheKeyOfWhatIsStored(t *testing.T) {
	encrypted := func(names ...string) Stored {
		stored := Stored{Encrypted: map[string]int{}}
		for _, name := range names {
			stored.Encrypted[name] = 2
		}
		return stored
	}
	plain := Stored{Plain: []types.NamespacedName{{Namespace: "a", Name: "b"}}}
	tests := map[string]struct {
		keys     []string
		missing  bool
		err      error
		stored   Stored
		generate bool
		want     error
		told     string
	}{
		"a new directory gets a key":                      {missing: true, generate: true},
		"Secrets of before there was encryption":          {missing: true, stored: plain, generate: true},
		"the key that is stored":                          {keys: []string{"key-1"}, stored: encrypted("key-1")},
		"a key of before and the present one":             {keys: []string{"key-2", "key-1"}, stored: encrypted("key-1", "key-2")},
		"a key and nothing stored":                        {keys: []string{"key-1"}},
		"a missing key while Secrets are encrypted":       {missing: true, stored: encrypted("key-1"), want: errMissing, told: "2 Secrets"},
		"another key than the one that is stored":         {keys: []string{"key-2"}, stored: encrypted("key-1"), want: errOther, told: "than key-1"},
		"one of two keys":                                 {keys: []string{"key-2"}, stored: encrypted("key-1", "key-2"), want: errOther, told: "the 2 Secrets"},
		"a damaged file":                                  {err: errSyntax, stored: encrypted("key-1"), want: errDamaged, told: "back from a backup"},
		"a damaged file while nothing is encrypted":       {err: errSyntax, stored: plain, want: errDamaged, told: "remove the file"},
		"a value that says it is encrypted, by no name":   {keys: []string{"key-1"}, stored: encrypted(""), want: errOther},
		"a file that cannot be read is not a missing one": {err: os.ErrPermission, stored: encrypted("key-1"), want: os.ErrPermission},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			generate, err := decide("/data/encryption.yaml", test.keys, test.missing, test.err, test.stored)
			if generate != test.generate || !errors.Is(err, test.want) {
				t.Fatalf("a new key: %t, %v, want %t, %v", generate, err, test.generate, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.told) || !strings.Contains(err.Error(), "/data/encryption.yaml")) {
				t.Errorf("the error %q does not tell %q", err, test.told)
			}
		})
	}
}

func TestStoredValuesSayHowTheyAreStored(t *testing.T) {
	var stored Stored
	for key, value := range map[string]string{
		"/registry/secrets/a/one":   "k8s:enc:secretbox:v1:key-1:\x00\x01:",
		"/registry/secrets/a/two":   "k8s:enc:aescbc:v1:key-2:",
		"/registry/secrets/a/three": "k8s:enc:broken",
		"/registry/secrets/b/four":  "k8s\x00\x0a\x0c",
	} {
		if err := stored.add(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	want := Stored{Encrypted: map[string]int{"key-1": 1, "key-2": 1, "": 1}, Plain: []types.NamespacedName{{Namespace: "b", Name: "four"}}}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if err := stored.add("/registry/secrets/odd", nil); err == nil {
		t.Error("a key without a namespace is taken")
	}
}

var secretLine = regexp.MustCompile(`secret: (\S+)`)

func TestADamagedKeyIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := generate(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	names, err := parseKeys(good)
	if err != nil || len(names) != 1 {
		t.Fatalf("its keys are %q (%v)", names, err)
	}
	secret := secretLine.FindStringSubmatch(string(good))[1]
	other := base64.StdEncoding.EncodeToString(make([]byte, keyBytes))
	tests := map[string]struct {
		text string
		want error
	}{
		"empty":                    {"", errSyntax},
		"cut off":                  {string(good[:len(good)/2]), errSyntax},
		"an unknown field":         {string(good) + "keys: " + secret, errSyntax},
		"a key that is too short":  {strings.Replace(string(good), secret, base64.StdEncoding.EncodeToString([]byte("short")), 1), errLength},
		"a key that is no base64":  {strings.Replace(string(good), secret, "#"+secret[1:], 1), errLength},
		"another key":              {strings.Replace(string(good), secret, other, 1), errKey},
		"Secrets stored as before": {strings.Replace(string(good), "  - secretbox", "  - identity: {}\n  - secretbox", 1), errFirst},
		"nothing about Secrets":    {strings.Replace(string(good), "- secrets", "- configmaps", 1), errSyntax},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseKeys([]byte(test.text))
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v\n%s", err, test.want, test.text)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Error("the error quotes the key")
			}
		})
	}
}

func FuzzKeyNameOf(f *testing.F) {
	f.Add([]byte("k8s:enc:secretbox:v1:key-1:data"))
	f.Fuzz(func(_ *testing.T, value []byte) { keyNameOf(value) })
}
