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

// fakeIssuer issues numbered tokens.
type fakeIssuer struct {
	now   *time.Time
	count int
	err   error
}

func (f *fakeIssuer) Token(_ context.Context, _ []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.count++
	return &authenticationv1.TokenRequestStatus{
		Token: "token-" + strconv.Itoa(f.count), ExpirationTimestamp: metav1.NewTime(f.now.Add(time.Duration(*seconds) * time.Second)),
	}, nil
}

// readTree returns the files of a directory by path.
func readTree(t *testing.T, dir string) map[string]string {
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

func TestVolumeContent(t *testing.T) {
	objects := fakeObjects{
		secrets:    map[string]map[string][]byte{"s": {"tls.crt": []byte("cert"), "tls.key": []byte("key")}},
		configMaps: map[string]map[string]string{"c": {"ca.crt": "authority"}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"a": "b"}}}
	seconds := int64(3607)
	optional := true
	tests := map[string]struct {
		volume  corev1.Volume
		want    map[string]string
		wantErr error
	}{
		"a Secret": {volume: secretVolume("s"), want: map[string]string{"tls.crt": "cert", "tls.key": "key"}},
		"a key of a Secret at a path": {
			volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "pki/ca/tls.crt"}),
			want:   map[string]string{"pki/ca/tls.crt": "cert"},
		},
		"a missing key":             {volume: secretVolume("s", corev1.KeyToPath{Key: "other", Path: "x"}), wantErr: errMissingKey},
		"a path outside the volume": {volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "../x"}), wantErr: errInvalidPath},
		"the path of the link":      {volume: secretVolume("s", corev1.KeyToPath{Key: "tls.crt", Path: "..data"}), wantErr: errInvalidPath},
		"an emptyDir":               {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, want: map[string]string{}},
		"a persistent volume claim": {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}, wantErr: ErrUnsupported},
		"a hostPath":                {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}}, want: map[string]string{}},
		"a hostPath of a file":      {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x", Type: new(corev1.HostPathFile)}}}, wantErr: ErrUnsupported},
		"a persistent volume":       {volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}, wantErr: ErrUnsupported},
		"an optional Secret that does not exist": {
			volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "other", Optional: &optional}}},
			want:   map[string]string{},
		},
		"the projected volume of a service account": {
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
			err := v.Update(t.Context(), pod, objects, &fakeIssuer{now: &now}, now)
			if !errors.Is(err, test.wantErr) {
				t.Fatalf("error %v, want %v", err, test.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, readTree(t, v.dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVolumeUpdatesWithSource(t *testing.T) {
	secret := map[string][]byte{"a": []byte("1"), "b": []byte("1")}
	objects := fakeObjects{secrets: map[string]map[string][]byte{"s": secret}}
	spec, now := secretVolume("s"), time.Now()
	v := &Volume{spec: &spec, dir: filepath.Join(t.TempDir(), "v")}
	update := func() string {
		t.Helper()
		now = now.Add(time.Second)
		if err := v.Update(t.Context(), &corev1.Pod{}, objects, nil, now); err != nil {
			t.Fatal(err)
		}
		version, err := os.Readlink(filepath.Join(v.dir, currentLink))
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	first := update()
	if second := update(); second != first {
		t.Errorf("without a change of the Secret the version is %s instead of %s", second, first)
	}
	secret["a"] = []byte("2")
	delete(secret, "b")
	secret["c"] = []byte("2")
	if third := update(); third == first {
		t.Errorf("after a change of the Secret the version is still %s", third)
	}
	if diff := cmp.Diff(map[string]string{"a": "2", "c": "2"}, readTree(t, v.dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(v.dir, first)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old version still exists (%v)", err)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	seconds, now := int64(1000), time.Now()
	issuer := &fakeIssuer{now: &now}
	spec := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
	}}}}
	v := &Volume{spec: &spec, dir: filepath.Join(t.TempDir(), "v")}
	for _, step := range []struct {
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
		now, issuer.err = now.Add(step.after), step.broken
		if err := v.Update(t.Context(), &corev1.Pod{}, fakeObjects{}, issuer, now); err != nil {
			t.Fatal(err)
		}
		if got := readTree(t, v.dir)["token"]; got != step.want {
			t.Errorf("after another %s the token is %q, want %q", step.after, got, step.want)
		}
	}
}

func TestHostPathIsDirectoryOfNode(t *testing.T) {
	dir := t.TempDir()
	volume := func(path string) *Volume {
		return NewVolume(&corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}, filepath.Join(dir, "pod"), filepath.Join(dir, "host"))
	}
	for _, path := range []string{"/var/lib/etcd", "/", "/../../etc", "relative"} {
		if parent := filepath.Dir(volume(path).Dir()); parent != filepath.Join(dir, "host") {
			t.Errorf("the files of %s are in %s", path, parent)
		}
	}
	if outer, inner := volume("/data"), volume("/data/link"); filepath.Dir(inner.Dir()) == outer.Dir() {
		t.Errorf("a program that may write %s can replace %s by a link", outer.Dir(), inner.Dir())
	}
	if one, other := volume("/data/"), volume("/data"); one.Dir() != other.Dir() {
		t.Errorf("one path has the directories %s and %s", one.Dir(), other.Dir())
	}
}

func TestSubPathFollowsNoLinkOutOfVolume(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	volumes := map[string]*Volume{"v": {spec: &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, dir: dir}}
	container := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data", SubPath: "link/new"}}}
	if mounts, err := ContainerMounts(container, volumes, nil); err == nil {
		t.Errorf("the mounts are %v", mounts)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("the directory outside of the volume contains %v (%v)", entries, err)
	}
}
