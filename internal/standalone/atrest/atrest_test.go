package atrest

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestAStartNeedsTheKeyOfWhatIsStored(t *testing.T) {
	encrypted := func(names ...string) Stored {
		stored := Stored{Encrypted: map[string]int{}}
		for _, name := range names {
			stored.Encrypted[name] = 2
		}
		return stored
	}
	plain := Stored{Plain: []string{"/registry/secrets/a/b"}}
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
		"a missing key while Secrets are encrypted":       {missing: true, stored: encrypted("key-1"), want: errMissing, told: "2 Secrets and Works"},
		"another key than the one that is stored":         {keys: []string{"key-2"}, stored: encrypted("key-1"), want: errOther, told: "than key-1"},
		"one of two keys":                                 {keys: []string{"key-2"}, stored: encrypted("key-1", "key-2"), want: errOther, told: "the 2 Secrets"},
		"a damaged file":                                  {err: errSyntax, stored: encrypted("key-1"), want: errDamaged, told: "start over there"},
		"a damaged file while nothing is encrypted":       {err: errSyntax, stored: plain, want: errDamaged, told: "remove the file"},
		"a value that says it is encrypted, by no name":   {keys: []string{"key-1"}, stored: encrypted(""), want: errOther},
		"a file that cannot be read is not a missing one": {err: os.ErrPermission, stored: encrypted("key-1"), want: os.ErrPermission},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			generate, err := decide(keyFile{path: "/data/encryption.yaml", names: test.keys, missing: test.missing}, test.err, test.stored, "start over there")
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
		stored.add(key, []byte(value))
	}
	want := Stored{Encrypted: map[string]int{"key-1": 1, "key-2": 1, "": 1}, Plain: []string{"/registry/secrets/b/four"}}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// memoryStore is a store of a few values.
type memoryStore struct {
	clientv3.KV
	pairs []*mvccpb.KeyValue
}

func (s memoryStore) Get(_ context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	end := string(clientv3.OpGet(key, opts...).RangeBytes())
	found := &clientv3.GetResponse{}
	for _, pair := range s.pairs {
		if name := string(pair.Key); name >= key && name < end {
			found.Kvs = append(found.Kvs, pair)
		}
	}
	return found, nil
}

func TestAStartCoversSecretsAndWorks(t *testing.T) {
	secret, work := "/registry/secrets/a/b", "/registry/work.karmada.io/works/karmada-es-east/b"
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	prepare := func(values map[string]string) (plain []string, err error) {
		store := memoryStore{pairs: []*mvccpb.KeyValue{
			{Key: []byte("/registry/configmaps/a/b"), Value: []byte("plain")},
			{Key: []byte(secret), Value: []byte(values[secret])},
			{Key: []byte(work), Value: []byte(values[work])},
		}}
		return Prepare(t.Context(), path, "start over", store)
	}
	plain, err := prepare(map[string]string{secret: "plain", work: "plain"})
	if diff := cmp.Diff([]string{secret, work}, plain); err != nil || diff != "" {
		t.Fatalf("what is stored as it is (%v) (-want +got):\n%s", err, diff)
	}
	made, err := readKeyFile(path)
	if err != nil || len(made.names) != 1 || len(made.uncovered) > 0 {
		t.Fatalf("the keys of a new file are %q, it does not cover %q (%v)", made.names, made.uncovered, err)
	}

	// The file of an earlier release: it covers Secrets, and Works are stored as they are.
	made.configuration.Resources[0].Resources = []string{"secrets"}
	if err := write(path, made.configuration); err != nil {
		t.Fatal(err)
	}
	encrypted := "k8s:enc:secretbox:v1:" + made.names[0] + ":x"
	plain, err = prepare(map[string]string{secret: encrypted, work: "plain"})
	if diff := cmp.Diff([]string{work}, plain); err != nil || diff != "" {
		t.Errorf("what is stored as it is (%v) (-want +got):\n%s", err, diff)
	}
	covered, err := readKeyFile(path)
	if err != nil || len(covered.uncovered) > 0 {
		t.Errorf("it does not cover %q (%v)", covered.uncovered, err)
	}
	if diff := cmp.Diff(made.names, covered.names); diff != "" {
		t.Errorf("the keys changed (-want +got):\n%s", diff)
	}

	// Works that cannot be read are as bad as Secrets that cannot.
	if _, err := prepare(map[string]string{secret: encrypted, work: "k8s:enc:secretbox:v1:key-other:x"}); !errors.Is(err, errOther) {
		t.Errorf("a Work with another key: %v", err)
	}
}

func TestAKeyFileOfAUserKeepsItsWay(t *testing.T) {
	entry := func(resources string, providers string) string {
		return "- resources: [" + resources + "]\n  providers:\n" + providers
	}
	key := base64.StdEncoding.EncodeToString(make([]byte, keyBytes))
	box, identity := "  - secretbox: {keys: [{name: mine, secret: "+key+"}]}\n", "  - identity: {}\n"
	tests := map[string]struct {
		resources string
		uncovered []string
		want      error
	}{
		"Secrets alone":                  {resources: entry("secrets", box+identity), uncovered: []string{"works.work.karmada.io"}},
		"Secrets and Works":              {resources: entry("secrets, works.work.karmada.io", box)},
		"Works in an entry of their own": {resources: entry("secrets", box) + entry("works.work.karmada.io", box)},
		"Works by their group":           {resources: entry(`secrets, "*.work.karmada.io"`, box)},
		"everything":                     {resources: entry(`"*.*"`, box)},
		"Works as they are":              {resources: entry("secrets", box) + entry("works.work.karmada.io", identity+box), want: errFirst},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := parseKeyFile([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + test.resources))
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff([]string{"mine"}, file.names); diff != "" {
				t.Errorf("its keys (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.uncovered, file.uncovered); diff != "" {
				t.Errorf("what it does not cover (-want +got):\n%s", diff)
			}
		})
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
	file, err := parseKeyFile(good)
	if err != nil || len(file.names) != 1 {
		t.Fatalf("its keys are %q (%v)", file.names, err)
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
			_, err := parseKeyFile([]byte(test.text))
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
