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

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/standalone/etcd"
)

const (
	secretText      = "sentinel-that-must-not-be-on-the-disk"
	secretsPrefix   = "/registry/secrets/default/"
	worksPrefix     = "/registry/work.karmada.io/works/default/"
	secretboxPrefix = "k8s:enc:secretbox:v1:key-"
)

var worksResource = workv1alpha1.GroupVersion.WithResource(workv1alpha1.ResourcePluralWork)

// newSecretWork returns a Work that delivers a Secret.
func newSecretWork(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workv1alpha1.GroupVersion.String(), "kind": workv1alpha1.ResourceKindWork,
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "default"},
			"data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(text))},
		}}}},
	}}
}

// serveWorks installs the CRD of Works in a cluster.
func serveWorks(ctx context.Context, t *testing.T, cluster *Cluster) dynamic.ResourceInterface {
	t.Helper()
	karmadaClient, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	for _, one := range all {
		if one.Name() == worksResource.GroupResource().String() {
			err = yaml.Unmarshal(one.YAML, &crd.Object)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	definitions := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	if _, err := karmadaClient.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	works := karmadaClient.Resource(worksResource).Namespace("default")
	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := works.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return works
}

// mustBeEncrypted checks that the values in etcd are encrypted.
func mustBeEncrypted(t *testing.T, store clientv3.KV, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if raw := rawValue(t, store, key); !bytes.HasPrefix(raw, []byte(secretboxPrefix)) {
			t.Errorf("%s is stored as %q", key, raw)
		}
	}
}

// rawValue returns the value of an object in etcd.
func rawValue(t *testing.T, store clientv3.KV, key string) []byte {
	t.Helper()
	found, err := store.Get(t.Context(), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("reading %s: %d values, %v", key, len(found.Kvs), err)
	}
	return found.Kvs[0].Value
}

// putUnencrypted stores a Secret and a Work as a release without encryption stores them.
func putUnencrypted(t *testing.T, dir string) {
	t.Helper()
	server, err := etcd.Start(t.Context(), etcd.Options{DataDir: storageDir(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	store := server.Client()
	work := newSecretWork("old", "of before")
	work.SetUID("d-e-f")
	work.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	text, err := work.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), worksPrefix+"old", string(text)); err != nil {
		t.Fatal(err)
	}
	_, err = store.Put(t.Context(), secretsPrefix+"old", `{"apiVersion":"v1","kind":"Secret","type":"Opaque",`+
		`"metadata":{"name":"old","namespace":"default","uid":"a-b-c","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"`+base64.StdEncoding.EncodeToString([]byte("of before"))+`"}}`)
	if err != nil {
		t.Fatal(err)
	}
}

// mustNotContain checks that no file in a directory contains the text, in plain text or in base64.
func mustNotContain(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
			t.Errorf("%s contains %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSecretsAreEncryptedInEtcd checks Secrets, and Works that deliver Secrets, over several
// starts of a cluster. A client writes one Secret and one Work, and an earlier release has stored
// one Secret and one Work. The key file is removed temporarily.
func TestSecretsAreEncryptedInEtcd(t *testing.T) {
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
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Data: map[string][]byte{"a": []byte(secretText)}}
	if _, err := client.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := serveWorks(ctx, t, cluster).Create(ctx, newSecretWork("new", secretText), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustBeEncrypted(t, cluster.etcd.Client(), secretsPrefix+"new", worksPrefix+"new")
	mustBeAudited(t, options.AuditLog, `"verb":"create"`, `"resource":"secrets","namespace":"default","name":"new"`)
	mustNotContain(t, dir, secretText)
	options.Port = cluster.Port()
	cluster.Stop()

	putUnencrypted(t, dir)
	key := cluster.encryptionFile()
	if err := os.Rename(key, key+".kept"); err != nil {
		t.Fatal(err)
	}
	if withoutKey, err := Start(ctx, options); err == nil || !strings.Contains(err.Error(), "the 2 Secrets and Works") || !strings.Contains(err.Error(), key) {
		withoutKey.Stop()
		t.Errorf("the cluster starts without the key of the stored values: %v", err)
	}
	if _, err := os.Stat(key); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new key was generated (%v)", err)
	}
	if err := os.Rename(key+".kept", key); err != nil {
		t.Fatal(err)
	}

	if cluster, err = Start(ctx, options); err != nil {
		t.Fatal(err)
	}
	mustBeEncrypted(t, cluster.etcd.Client(), secretsPrefix+"new", worksPrefix+"new", secretsPrefix+"old", worksPrefix+"old")
	karmadaClient, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	if client, err = kubernetes.NewForConfig(cluster.Config()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": secretText, "old": "of before"} {
		if found, err := client.CoreV1().Secrets("default").Get(ctx, name, metav1.GetOptions{}); err != nil || string(found.Data["a"]) != want {
			t.Errorf("Secret %s has %q, want %q (%v)", name, found.Data["a"], want, err)
		}
		found, err := karmadaClient.Resource(worksResource).Namespace("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(newSecretWork(name, want).Object["spec"], found.Object["spec"]); diff != "" {
			t.Errorf("Work %s (-want +got):\n%s", name, diff)
		}
	}
}

// mustBeAudited waits until one line of an audit log contains all parts.
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
		t.Error(fmt.Errorf("no line of the audit log contains %q: %w", parts, err))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the audit log is %v (%v)", info.Mode(), err)
	}
}
