package standalone

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	sentinel = "sentinel-that-must-not-be-on-the-disk"
	oldKey   = "/registry/secrets/default/old"
)

// rawSecret is what etcd holds of a Secret.
func rawSecret(t *testing.T, endpoint, key string) []byte {
	t.Helper()
	store, err := dialEtcd(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	found, err := store.Get(t.Context(), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("reading %s: %d values, %v", key, len(found.Kvs), err)
	}
	return found.Kvs[0].Value
}

// putOld stores a Secret as a release without encryption has.
func putOld(t *testing.T, dir string) {
	t.Helper()
	endpoint, etcd, err := startEtcd(t.Context(), EtcdOptions{DataDir: filepath.Join(dir, etcdDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { etcd.stop(); <-etcd.done }()
	store, err := dialEtcd(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	_, err = store.Put(t.Context(), oldKey, `{"apiVersion":"v1","kind":"Secret","type":"Opaque",`+
		`"metadata":{"name":"old","namespace":"default","uid":"a-b-c","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"`+base64.StdEncoding.EncodeToString([]byte("of before"))+`"}}`)
	if err != nil {
		t.Fatal(err)
	}
}

// mustNotHold demands that no file below a directory has the text, plain or encoded.
func mustNotHold(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
			t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSecretsAreEncryptedWhereTheyAreStored follows Secrets through the lives of a
// cluster: one is written, one is left by an earlier release, and the key is lost.
func TestSecretsAreEncryptedWhereTheyAreStored(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	dir := t.TempDir()
	options := Options{Name: "member1", CommonName: "member1", Dir: dir, AuditLog: filepath.Join(dir, "audit", "audit.log")}
	cluster, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cluster.Stop() }()
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Data: map[string][]byte{"a": []byte(sentinel)}}
	if _, err := client.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if raw := rawSecret(t, cluster.endpoint, "/registry/secrets/default/new"); !bytes.HasPrefix(raw, []byte("k8s:enc:secretbox:v1:key-")) {
		t.Errorf("it is stored as %q", raw)
	}
	mustBeAudited(t, options.AuditLog, `"verb":"create"`, `"resource":"secrets","namespace":"default","name":"new"`)
	mustNotHold(t, dir, sentinel)
	options.Port = cluster.Port()
	cluster.Stop()

	putOld(t, dir)
	key := cluster.encryptionFile()
	if err := os.Rename(key, key+".kept"); err != nil {
		t.Fatal(err)
	}
	if lost, err := Start(ctx, options); err == nil || !strings.Contains(err.Error(), "1 Secrets") || !strings.Contains(err.Error(), key) {
		lost.Stop()
		t.Errorf("it starts without the key of what is stored: %v", err)
	}
	if _, err := os.Stat(key); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another key was made (%v)", err)
	}
	if err := os.Rename(key+".kept", key); err != nil {
		t.Fatal(err)
	}

	if cluster, err = Start(ctx, options); err != nil {
		t.Fatal(err)
	}
	if raw := rawSecret(t, cluster.endpoint, oldKey); !bytes.HasPrefix(raw, []byte("k8s:enc:secretbox:v1:key-")) {
		t.Errorf("the Secret of before is stored as %q", raw)
	}
	if client, err = kubernetes.NewForConfig(cluster.Config()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": sentinel, "old": "of before"} {
		if found, err := client.CoreV1().Secrets("default").Get(ctx, name, metav1.GetOptions{}); err != nil || string(found.Data["a"]) != want {
			t.Errorf("Secret %s says %q, want %q (%v)", name, found.Data["a"], want, err)
		}
	}
}

// mustBeAudited waits until one line of an audit log has all of the parts.
func mustBeAudited(t *testing.T, path string, parts ...string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(log)) {
			has := 0
			for _, part := range parts {
				if strings.Contains(line, part) {
					has++
				}
			}
			if has == len(parts) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Error(fmt.Errorf("no line of the audit log has %q: %w", parts, err))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the audit log is %v (%v)", info.Mode(), err)
	}
}
