package layout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuer counts the tokens that it gave.
type issuer struct {
	now    *time.Time
	count  int
	broken error
}

func (i *issuer) Token(_ context.Context, _ []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error) {
	if i.broken != nil {
		return nil, i.broken
	}
	i.count++
	return &authenticationv1.TokenRequestStatus{
		Token: "token-" + strconv.Itoa(i.count), ExpirationTimestamp: metav1.NewTime(i.now.Add(time.Duration(*seconds) * time.Second)),
	}, nil
}

// tree is what a reader of a directory finds.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		top, err := filepath.EvalSymlinks(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			found[filepath.Join(entry.Name(), strings.TrimPrefix(path, top))] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func secretVolume(name string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items}}}
}

func TestVolumesHoldWhatTheyAreMadeOf(t *testing.T) {
	from := stored{
		secrets:    map[string]map[string][]byte{"s": {"tls.crt": []byte("cert"), "tls.key": []byte("key")}},
		configMaps: map[string]map[string]string{"c": {"ca.crt": "authority"}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"a": "b"}}}
	seconds := int64(3607)
	optional := true
	tests := map[string]struct {
		volume corev1.Volume
		want   map[string]string
		fails  error
	}{
		"a Secret": {volume: secretVolume("s"), want: map[string]string{"tls.crt": "cert", "tls.key": "key"}},
		"a key of it at a path": {
			volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "pki/ca/tls.crt"}),
			want:   map[string]string{"pki/ca/tls.crt": "cert"},
		},
		"a key that is not there":   {volume: secretVolume("s", corev1.KeyToPath{Key: "other", Path: "x"}), fails: errMissingKey},
		"a path that leaves":        {volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "../x"}), fails: errPath},
		"a path that is a link's":   {volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "..data"}), fails: errPath},
		"an empty directory":        {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, want: map[string]string{}},
		"a claim is not supported":  {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}, fails: ErrUnsupported},
		"nor is a path of the host": {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}, fails: ErrUnsupported},
		"a Secret that may be absent": {
			volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "other", Optional: &optional}}},
			want:   map[string]string{},
		},
		"what a service account needs": {
			volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
					{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				}}},
			}}}},
			want: map[string]string{"token": "token-1", "ca.crt": "authority", "namespace": "n", "labels": `a="b"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			v := &Volume{spec: &test.volume, dir: filepath.Join(t.TempDir(), "v")}
			err := v.Lay(t.Context(), pod, from, &issuer{now: &now}, now)
			if !errors.Is(err, test.fails) {
				t.Fatalf("error %v, want %v", err, test.fails)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, tree(t, v.dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVolumeFollowsItsSource(t *testing.T) {
	secret := map[string][]byte{"a": []byte("1"), "b": []byte("1")}
	from := stored{secrets: map[string]map[string][]byte{"s": secret}}
	spec, now := secretVolume("s"), time.Now()
	v := &Volume{spec: &spec, dir: filepath.Join(t.TempDir(), "v")}
	look := func() string {
		t.Helper()
		now = now.Add(time.Second)
		if err := v.Lay(t.Context(), &corev1.Pod{}, from, nil, now); err != nil {
			t.Fatal(err)
		}
		version, err := os.Readlink(filepath.Join(v.dir, current))
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	first := look()
	if second := look(); second != first {
		t.Errorf("nothing changed, and the files are %s instead of %s", second, first)
	}
	secret["a"] = []byte("2")
	delete(secret, "b")
	secret["c"] = []byte("2")
	if third := look(); third == first {
		t.Errorf("the Secret changed, and the files are still %s", third)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "c": "2"}, tree(t, v.dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(v.dir, first)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former files are still there (%v)", err)
	}
}

func TestATokenIsRenewedInTime(t *testing.T) {
	seconds, now := int64(1000), time.Now()
	from := &issuer{now: &now}
	spec := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
	}}}}
	v := &Volume{spec: &spec, dir: filepath.Join(t.TempDir(), "v")}
	for _, look := range []struct {
		after  time.Duration
		broken error
		want   string
	}{
		{0, nil, "token-1"},
		{799 * time.Second, nil, "token-1"},
		{time.Second, errors.New("no answer"), "token-1"},
		{time.Second, nil, "token-2"},
		{800 * time.Second, nil, "token-3"},
	} {
		now, from.broken = now.Add(look.after), look.broken
		if err := v.Lay(t.Context(), &corev1.Pod{}, stored{}, from, now); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, v.dir)["token"]; got != look.want {
			t.Errorf("after %s more the token is %q, want %q", look.after, got, look.want)
		}
	}
}
