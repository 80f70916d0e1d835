// Package layout maps a Pod's volumes, variables and arguments for a program without a container file
// system. Volumes become directories of the machine, and paths in variables and arguments are rewritten to
// these directories.
//
// Invariants: all files of a volume change at once, and only when their source changed. If a feature is not
// available, the package returns an error that wraps ErrUnsupported. The package starts no processes, and
// reads the cluster only through its interfaces.
package layout

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// TokenIssuer requests tokens of a Pod's service account.
type TokenIssuer interface {
	Token(ctx context.Context, audiences []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error)
}

// Volume is a Pod's volume as a directory of this machine.
type Volume struct {
	spec *corev1.Volume
	dir  string
	// issued contains the valid tokens by their path in the volume.
	issued  map[string]issuedToken
	written files
}

// issuedToken is a token and the time at which the token is renewed.
type issuedToken struct {
	value   string
	renewAt time.Time
}

// NewVolume returns a Pod's volume. Its files are in dir, which is removed with the Pod. A hostPath's files
// are in a directory below hostDir, which remains.
//
// Each hostPath has its own directory directly in hostDir, so a path below another path is not a part of it,
// and no element of a directory's path is a link that a program created.
func NewVolume(spec *corev1.Volume, dir, hostDir string) *Volume {
	if spec.HostPath != nil {
		dir = filepath.Join(hostDir, url.PathEscape(path.Clean("/"+spec.HostPath.Path)))
	}
	return &Volume{spec: spec, dir: dir}
}

// Dir returns the directory of the volume on this machine.
func (v *Volume) Dir() string { return v.dir }

// IsWritable reports whether programs may change the volume. Only emptyDir and hostPath volumes are
// writable, because all other volumes are copies of objects of the cluster.
func (v *Volume) IsWritable() bool { return v.spec.EmptyDir != nil || v.spec.HostPath != nil }

// CheckVolume returns an error if this node does not support the volume.
func CheckVolume(v *corev1.Volume) error {
	source := v.VolumeSource
	switch {
	case source.Secret != nil, source.ConfigMap != nil, source.DownwardAPI != nil, source.EmptyDir != nil:
		return nil
	case source.Projected != nil:
		for i := range source.Projected.Sources {
			if p := &source.Projected.Sources[i]; p.ClusterTrustBundle != nil || p.PodCertificate != nil {
				return fmt.Errorf("volume %q: clusterTrustBundle and podCertificate: %w", v.Name, ErrUnsupported)
			}
		}
		return nil
	case source.HostPath != nil:
		return validateHostPath(v)
	case source.PersistentVolumeClaim != nil, source.Ephemeral != nil:
		return fmt.Errorf("volume %q: persistentVolumeClaim: %w, because simulated clusters have no persistent volumes: use a hostPath, which outlives the Pod, or an emptyDir", v.Name, ErrUnsupported)
	default:
		return fmt.Errorf("volume %q: %w: use a secret, configMap, projected, downwardAPI, emptyDir or hostPath volume", v.Name, ErrUnsupported)
	}
}

// validateHostPath accepts only directories, because a hostPath's files, sockets and devices would be those of
// the machine.
func validateHostPath(v *corev1.Volume) error {
	kind := corev1.HostPathUnset
	if v.HostPath.Type != nil {
		kind = *v.HostPath.Type
	}
	switch kind {
	case corev1.HostPathUnset, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		return nil
	default:
		return fmt.Errorf("volume %q: hostPath of type %s: %w, because it would be a file of the machine: use the type DirectoryOrCreate", v.Name,
			kind, ErrUnsupported)
	}
}

// Update writes the volume's current content to the directory. It may be called repeatedly. Files change
// only when their content changed, and all of the volume's files change at once.
func (v *Volume) Update(ctx context.Context, pod *corev1.Pod, objects ObjectReader, issuer TokenIssuer, now time.Time) error {
	if err := CheckVolume(v.spec); err != nil {
		return err
	}
	if v.IsWritable() {
		if err := os.MkdirAll(v.dir, 0o700); err != nil {
			return fmt.Errorf("writing volume %q: %w", v.spec.Name, err)
		}
		return nil
	}
	content, err := v.content(ctx, pod, objects, issuer, now)
	if err != nil {
		return fmt.Errorf("writing volume %q: %w", v.spec.Name, err)
	}
	if v.written != nil && v.written.equal(content) {
		return nil
	}
	if err := content.write(v.dir, now); err != nil {
		return fmt.Errorf("writing volume %q: %w", v.spec.Name, err)
	}
	v.written = content
	return nil
}

func (v *Volume) content(ctx context.Context, pod *corev1.Pod, objects ObjectReader, issuer TokenIssuer, now time.Time) (files, error) {
	content := files{}
	switch source := v.spec.VolumeSource; {
	case source.Secret != nil:
		s := source.Secret
		return content, content.addSecret(ctx, objects, s.SecretName, s.Items, s.Optional, fileMode(s.DefaultMode))
	case source.ConfigMap != nil:
		s := source.ConfigMap
		return content, content.addConfigMap(ctx, objects, s.Name, s.Items, s.Optional, fileMode(s.DefaultMode))
	case source.DownwardAPI != nil:
		return content, content.addFields(pod, source.DownwardAPI.Items, fileMode(source.DownwardAPI.DefaultMode))
	case source.Projected != nil:
		for i := range source.Projected.Sources {
			if err := v.addProjection(ctx, content, &source.Projected.Sources[i], pod, objects, issuer, now); err != nil {
				return nil, err
			}
		}
		return content, nil
	default:
		return content, nil // CheckVolume rejects other sources
	}
}

func (v *Volume) addProjection(ctx context.Context, content files, source *corev1.VolumeProjection, pod *corev1.Pod, objects ObjectReader,
	issuer TokenIssuer, now time.Time) error {
	mode := fileMode(v.spec.Projected.DefaultMode)
	switch {
	case source.Secret != nil:
		return content.addSecret(ctx, objects, source.Secret.Name, source.Secret.Items, source.Secret.Optional, mode)
	case source.ConfigMap != nil:
		return content.addConfigMap(ctx, objects, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional, mode)
	case source.DownwardAPI != nil:
		return content.addFields(pod, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		return v.addToken(ctx, content, source.ServiceAccountToken, issuer, mode, now)
	default:
		return nil
	}
}

// tokenShare is the fraction of its lifetime after which a token is renewed. tokenLimit is the
// maximum time before a token is renewed.
const (
	tokenShare = 0.8
	tokenLimit = 24 * time.Hour
)

func (v *Volume) addToken(ctx context.Context, content files, source *corev1.ServiceAccountTokenProjection, issuer TokenIssuer,
	mode os.FileMode, now time.Time) error {
	token, ok := v.issued[source.Path]
	if !ok || !now.Before(token.renewAt) {
		var audiences []string
		if source.Audience != "" {
			audiences = []string{source.Audience}
		}
		status, err := issuer.Token(ctx, audiences, source.ExpirationSeconds)
		switch {
		case err == nil:
			renewAfter := time.Duration(float64(status.ExpirationTimestamp.Sub(now)) * tokenShare)
			token = issuedToken{value: status.Token, renewAt: now.Add(min(renewAfter, tokenLimit))}
		case !ok:
			return err
		}
		// A token that cannot be renewed is used until it expires. The next update retries the renewal.
	}
	if v.issued == nil {
		v.issued = map[string]issuedToken{}
	}
	v.issued[source.Path] = token
	return content.add(source.Path, []byte(token.value), mode)
}

const defaultFileMode = 0o644

func fileMode(mode *int32) os.FileMode {
	if mode == nil {
		return defaultFileMode
	}
	return os.FileMode(*mode) & os.ModePerm // the API allows 0 to 0777
}

var errInvalidPath = errors.New("the path must be relative, stay in the volume, and name only variables of the container")

func (f files) addSecret(ctx context.Context, objects ObjectReader, name string, items []corev1.KeyToPath, optional *bool,
	mode os.FileMode) error {
	secret, err := objects.Secret(ctx, name, optional)
	if err != nil || secret == nil {
		return err
	}
	return f.addData(fmt.Sprintf("Secret %q", name), secret.Data, items, optional, mode)
}

func (f files) addConfigMap(ctx context.Context, objects ObjectReader, name string, items []corev1.KeyToPath, optional *bool,
	mode os.FileMode) error {
	configMap, err := objects.ConfigMap(ctx, name, optional)
	if err != nil || configMap == nil {
		return err
	}
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	for key, value := range configMap.BinaryData {
		data[key] = value
	}
	return f.addData(fmt.Sprintf("ConfigMap %q", name), data, items, optional, mode)
}

func (f files) addData(source string, data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode os.FileMode) error {
	if len(items) == 0 {
		for key, value := range data {
			if err := f.add(key, value, mode); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		switch {
		case ok:
			itemMode := mode
			if item.Mode != nil {
				itemMode = fileMode(item.Mode)
			}
			if err := f.add(item.Path, value, itemMode); err != nil {
				return err
			}
		case optional == nil || !*optional:
			return fmt.Errorf("reading key %q of %s: %w", item.Key, source, errMissingKey)
		}
	}
	return nil
}

func (f files) addFields(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode os.FileMode) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return fmt.Errorf("item %q: a source other than fieldRef: %w", item.Path, ErrUnsupported)
		}
		value, err := fieldValue(pod, item.FieldRef.FieldPath)
		if err != nil {
			return fmt.Errorf("item %q: %w", item.Path, err)
		}
		itemMode := mode
		if item.Mode != nil {
			itemMode = fileMode(item.Mode)
		}
		if err := f.add(item.Path, []byte(value), itemMode); err != nil {
			return err
		}
	}
	return nil
}

// ContainerMounts returns the mounts of one container. env are the variables of subPathExpr.
func ContainerMounts(container *corev1.Container, volumes map[string]*Volume, env []corev1.EnvVar) (Mounts, error) {
	values := variableValues(env)
	all := make([]mount, 0, len(container.VolumeMounts))
	for _, m := range container.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			return nil, fmt.Errorf("mounting %s: there is no volume %q", m.MountPath, m.Name)
		}
		if filepath.Clean(m.MountPath) == "/" {
			return nil, fmt.Errorf("mounting volume %q at %s: mount path /: %w", m.Name, m.MountPath, ErrUnsupported)
		}
		source, subPath := v.dir, m.SubPath+expandVariables(m.SubPathExpr, values) // at most one is set
		if subPath != "" {
			if source, ok = joinBelow(v.dir, subPath); !ok || strings.Contains(subPath, "$(") {
				return nil, fmt.Errorf("mounting volume %q with subPath %q: %w", m.Name, subPath, errInvalidPath)
			}
			if v.IsWritable() {
				if err := makeDirInside(v.dir, subPath); err != nil {
					return nil, fmt.Errorf("mounting volume %q: %w", m.Name, err)
				}
			}
		}
		all = append(all, mount{path: m.MountPath, source: source})
	}
	return newMounts(all...), nil
}

// makeDirInside creates a directory in a volume. It follows no link out of the volume, because a program may
// have created links there.
func makeDirInside(dir, relative string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err // the caller names the volume
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.MkdirAll(relative, 0o700)
}
