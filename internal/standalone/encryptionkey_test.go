package standalone

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

func TestStartRequiresKeyOfStoredValues(t *testing.T) {
	encrypted := func(names ...string) storedValues {
		stored := storedValues{EncryptedByKey: map[string]int{}}
		for _, name := range names {
			stored.EncryptedByKey[name] = 2
		}
		return stored
	}
	plain := storedValues{PlaintextKeys: []string{"/registry/secrets/a/b"}}
	tests := map[string]struct {
		keys        []string
		missing     bool
		err         error
		stored      storedValues
		generate    bool
		want        error
		wantMessage string
	}{
		"a new data directory gets a key":                {missing: true, generate: true},
		"unencrypted Secrets of an earlier release":      {missing: true, stored: plain, generate: true},
		"the file has the key of the stored values":      {keys: []string{"key-1"}, stored: encrypted("key-1")},
		"the file has the old and the current key":       {keys: []string{"key-2", "key-1"}, stored: encrypted("key-1", "key-2")},
		"a key and no stored values":                     {keys: []string{"key-1"}},
		"a missing key file while Secrets are encrypted": {missing: true, stored: encrypted("key-1"), want: errKeyFileMissing, wantMessage: "2 Secrets and Works"},
		"another key than that of the stored values":     {keys: []string{"key-2"}, stored: encrypted("key-1"), want: errWrongKey, wantMessage: "than key-1"},
		"one of two keys is missing":                     {keys: []string{"key-2"}, stored: encrypted("key-1", "key-2"), want: errWrongKey, wantMessage: "the 2 Secrets"},
		"a damaged key file":                             {err: errNotEncryptionConfig, stored: encrypted("key-1"), want: errKeyFileDamaged, wantMessage: "start over there"},
		"a damaged key file while no value is encrypted": {err: errNotEncryptionConfig, stored: plain, want: errKeyFileDamaged, wantMessage: "remove the file"},
		"an encrypted value without the name of a key":   {keys: []string{"key-1"}, stored: encrypted(""), want: errWrongKey},
		"an unreadable key file is not a missing one":    {err: os.ErrPermission, stored: encrypted("key-1"), want: os.ErrPermission},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			generate, err := decideKeyGeneration(keyFile{path: "/data/encryption.yaml", keyNames: test.keys, missing: test.missing}, test.err, test.stored, "start over there")
			if generate != test.generate || !errors.Is(err, test.want) {
				t.Fatalf("generate is %t with error %v, want %t with %v", generate, err, test.generate, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.wantMessage) || !strings.Contains(err.Error(), "/data/encryption.yaml")) {
				t.Errorf("the error %q does not contain %q", err, test.wantMessage)
			}
		})
	}
}

func TestStoredValuesCountByKey(t *testing.T) {
	var stored storedValues
	for key, value := range map[string]string{
		"/registry/secrets/a/one":   "k8s:enc:secretbox:v1:key-1:\x00\x01:",
		"/registry/secrets/a/two":   "k8s:enc:aescbc:v1:key-2:",
		"/registry/secrets/a/three": "k8s:enc:broken",
		"/registry/secrets/b/four":  "k8s\x00\x0a\x0c",
	} {
		stored.add(key, []byte(value))
	}
	want := storedValues{EncryptedByKey: map[string]int{"key-1": 1, "key-2": 1, "": 1}, PlaintextKeys: []string{"/registry/secrets/b/four"}}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// memoryStore is an in-memory etcd with a few values.
type memoryStore struct {
	clientv3.KV
	pairs []*mvccpb.KeyValue
}

func (m memoryStore) Get(_ context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	end := string(clientv3.OpGet(key, opts...).RangeBytes())
	found := &clientv3.GetResponse{}
	for _, pair := range m.pairs {
		if name := string(pair.Key); name >= key && name < end {
			found.Kvs = append(found.Kvs, pair)
		}
	}
	return found, nil
}

func TestPrepareCoversSecretsAndWorks(t *testing.T) {
	secret, work := "/registry/secrets/a/b", "/registry/work.karmada.io/works/karmada-es-east/b"
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	prepare := func(values map[string]string) (plain []string, err error) {
		store := memoryStore{pairs: []*mvccpb.KeyValue{
			{Key: []byte("/registry/configmaps/a/b"), Value: []byte("plain")},
			{Key: []byte(secret), Value: []byte(values[secret])},
			{Key: []byte(work), Value: []byte(values[work])},
		}}
		return prepareKeyFile(t.Context(), path, "start over", store)
	}
	plain, err := prepare(map[string]string{secret: "plain", work: "plain"})
	if diff := cmp.Diff([]string{secret, work}, plain); err != nil || diff != "" {
		t.Fatalf("unencrypted keys (%v) (-want +got):\n%s", err, diff)
	}
	generated, err := readKeyFile(path)
	if err != nil || len(generated.keyNames) != 1 || len(generated.uncoveredResources) > 0 {
		t.Fatalf("a new file has the keys %q and does not cover %q (%v)", generated.keyNames, generated.uncoveredResources, err)
	}

	// Simulate an earlier release: its key file lists only Secrets, and it stored Works
	// unencrypted.
	generated.configuration.Resources[0].Resources = []string{"secrets"}
	if err := writeKeyFile(path, generated.configuration); err != nil {
		t.Fatal(err)
	}
	encrypted := "k8s:enc:secretbox:v1:" + generated.keyNames[0] + ":x"
	plain, err = prepare(map[string]string{secret: encrypted, work: "plain"})
	if diff := cmp.Diff([]string{work}, plain); err != nil || diff != "" {
		t.Errorf("unencrypted keys (%v) (-want +got):\n%s", err, diff)
	}
	covered, err := readKeyFile(path)
	if err != nil || len(covered.uncoveredResources) > 0 {
		t.Errorf("the file does not cover %q (%v)", covered.uncoveredResources, err)
	}
	if diff := cmp.Diff(generated.keyNames, covered.keyNames); diff != "" {
		t.Errorf("the keys changed (-want +got):\n%s", diff)
	}

	// If the key of an encrypted Work is missing, the start fails, as for a Secret.
	if _, err := prepare(map[string]string{secret: encrypted, work: "k8s:enc:secretbox:v1:key-other:x"}); !errors.Is(err, errWrongKey) {
		t.Errorf("a Work with another key: %v", err)
	}
}

func TestParseKeyFileWrittenByUser(t *testing.T) {
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
		"Secrets alone":             {resources: entry("secrets", box+identity), uncovered: []string{"works.work.karmada.io"}},
		"Secrets and Works":         {resources: entry("secrets, works.work.karmada.io", box)},
		"Works in a separate entry": {resources: entry("secrets", box) + entry("works.work.karmada.io", box)},
		"Works by their group":      {resources: entry(`secrets, "*.work.karmada.io"`, box)},
		"all resources":             {resources: entry(`"*.*"`, box)},
		"Works unencrypted":         {resources: entry("secrets", box) + entry("works.work.karmada.io", identity+box), want: errFirstProvider},
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
			if diff := cmp.Diff([]string{"mine"}, file.keyNames); diff != "" {
				t.Errorf("key names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.uncovered, file.uncoveredResources); diff != "" {
				t.Errorf("uncovered resources (-want +got):\n%s", diff)
			}
		})
	}
}

var secretPattern = regexp.MustCompile(`secret: (\S+)`)

func TestParseKeyFileDetectsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := generateKeyFile(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the key file is %v (%v)", info.Mode(), err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parseKeyFile(good)
	if err != nil || len(file.keyNames) != 1 {
		t.Fatalf("the key names are %q (%v)", file.keyNames, err)
	}
	secret := secretPattern.FindStringSubmatch(string(good))[1]
	other := base64.StdEncoding.EncodeToString(make([]byte, keyBytes))
	tests := map[string]struct {
		text string
		want error
	}{
		"empty":                      {"", errNotEncryptionConfig},
		"cut off":                    {string(good[:len(good)/2]), errNotEncryptionConfig},
		"an unknown field":           {string(good) + "keys: " + secret, errNotEncryptionConfig},
		"a key that is too short":    {strings.Replace(string(good), secret, base64.StdEncoding.EncodeToString([]byte("short")), 1), errKeyLength},
		"a key that is not base64":   {strings.Replace(string(good), secret, "#"+secret[1:], 1), errKeyLength},
		"another key":                {strings.Replace(string(good), secret, other, 1), errKeyNameMismatch},
		"Secrets stored unencrypted": {strings.Replace(string(good), "  - secretbox", "  - identity: {}\n  - secretbox", 1), errFirstProvider},
		"no entry for Secrets":       {strings.Replace(string(good), "- secrets", "- configmaps", 1), errNotEncryptionConfig},
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

func FuzzEncryptionKeyName(f *testing.F) {
	f.Add([]byte("k8s:enc:secretbox:v1:key-1:data"))
	f.Fuzz(func(_ *testing.T, value []byte) { encryptionKeyName(value) })
}
