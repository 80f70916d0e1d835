// Package layout answers "where and how does a program without a file system of its own
// find what its Pod gives it?": volumes as directories, variables, and the words of its
// command with the paths of this machine in them.
//
// What it promises: all files of a volume change at once, and only when what they come
// from did; what cannot be had here is named by an error that is ErrUnsupported. It
// starts nothing, and reads the cluster through what it is given.
package layout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// Tokens makes tokens of a Pod's service account.
type Tokens interface {
	Token(ctx context.Context, audiences []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error)
}

// Volume is one volume of a Pod, as a directory of this machine.
type Volume struct {
	spec *corev1.Volume
	dir  string
	// issued are tokens that are still good, by their path in the volume.
	issued map[string]issuedToken
	laid   files
}

// issuedToken is a token and when to ask for the next.
type issuedToken struct {
	value string
	renew time.Time
}

// NewVolume is a volume of a Pod whose files are in dir.
func NewVolume(spec *corev1.Volume, dir string) *Volume { return &Volume{spec: spec, dir: dir} }

// Dir is the directory of the volume on this machine.
func (v *Volume) Dir() string { return v.dir }

// Writable reports whether programs may change the volume. Others are copies of
// objects of the cluster.
func (v *Volume) Writable() bool { return v.spec.EmptyDir != nil }

// CheckVolume names what this node cannot lay out, nil if it can.
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
		return fmt.Errorf("volume %q: hostPath: %w, for its Pods keep to the directory of their cluster: use an emptyDir", v.Name, ErrUnsupported)
	default:
		return fmt.Errorf("volume %q: %w: use a secret, configMap, projected, downwardAPI or emptyDir volume", v.Name, ErrUnsupported)
	}
}

// Lay brings the directory up to date. It may be called again and again: files
// change only when their content did, and all of a volume at once.
func (v *Volume) Lay(ctx context.Context, pod *corev1.Pod, from Objects, issuer Tokens, now time.Time) error {
	if v.spec.EmptyDir != nil {
		if err := os.MkdirAll(v.dir, 0o700); err != nil {
			return fmt.Errorf("laying out volume %q: %w", v.spec.Name, err)
		}
		return nil
	}
	want, err := v.content(ctx, pod, from, issuer, now)
	if err != nil {
		return fmt.Errorf("laying out volume %q: %w", v.spec.Name, err)
	}
	if v.laid != nil && v.laid.equal(want) {
		return nil
	}
	if err := want.write(v.dir, now); err != nil {
		return fmt.Errorf("laying out volume %q: %w", v.spec.Name, err)
	}
	v.laid = want
	return nil
}

func (v *Volume) content(ctx context.Context, pod *corev1.Pod, from Objects, issuer Tokens, now time.Time) (files, error) {
	content := files{}
	switch source := v.spec.VolumeSource; {
	case source.Secret != nil:
		s := source.Secret
		return content, content.addSecret(ctx, from, s.SecretName, s.Items, s.Optional, modeOf(s.DefaultMode))
	case source.ConfigMap != nil:
		s := source.ConfigMap
		return content, content.addConfigMap(ctx, from, s.Name, s.Items, s.Optional, modeOf(s.DefaultMode))
	case source.DownwardAPI != nil:
		return content, content.addFields(pod, source.DownwardAPI.Items, modeOf(source.DownwardAPI.DefaultMode))
	case source.Projected != nil:
		for i := range source.Projected.Sources {
			if err := v.project(ctx, content, &source.Projected.Sources[i], pod, from, issuer, now); err != nil {
				return nil, err
			}
		}
		return content, nil
	default:
		return nil, CheckVolume(v.spec)
	}
}

func (v *Volume) project(ctx context.Context, content files, source *corev1.VolumeProjection, pod *corev1.Pod, from Objects, issuer Tokens, now time.Time) error {
	mode := modeOf(v.spec.Projected.DefaultMode)
	switch {
	case source.Secret != nil:
		return content.addSecret(ctx, from, source.Secret.Name, source.Secret.Items, source.Secret.Optional, mode)
	case source.ConfigMap != nil:
		return content.addConfigMap(ctx, from, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional, mode)
	case source.DownwardAPI != nil:
		return content.addFields(pod, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		return v.addToken(ctx, content, source.ServiceAccountToken, issuer, mode, now)
	default:
		return nil
	}
}

// tokenShare is the part of its life after which a token is replaced, and
// tokenLimit the longest that one is used.
const (
	tokenShare = 0.8
	tokenLimit = 24 * time.Hour
)

func (v *Volume) addToken(ctx context.Context, content files, source *corev1.ServiceAccountTokenProjection, issuer Tokens, mode os.FileMode, now time.Time) error {
	have, ok := v.issued[source.Path]
	if !ok || !now.Before(have.renew) {
		var audiences []string
		if source.Audience != "" {
			audiences = []string{source.Audience}
		}
		status, err := issuer.Token(ctx, audiences, source.ExpirationSeconds)
		switch {
		case err == nil:
			life := time.Duration(float64(status.ExpirationTimestamp.Sub(now)) * tokenShare)
			have = issuedToken{value: status.Token, renew: now.Add(min(life, tokenLimit))}
		case !ok:
			return err
		}
		// One that could not be renewed is used to its end; the next look tries again.
	}
	if v.issued == nil {
		v.issued = map[string]issuedToken{}
	}
	v.issued[source.Path] = have
	return content.add(source.Path, []byte(have.value), mode)
}

const defaultFileMode = 0o644

func modeOf(mode *int32) os.FileMode {
	if mode == nil {
		return defaultFileMode
	}
	return os.FileMode(*mode) & os.ModePerm //nolint:gosec // the API allows 0 to 0777
}

var errPath = errors.New("it must be relative and stay in the volume")

func (f files) addSecret(ctx context.Context, from Objects, name string, items []corev1.KeyToPath, optional *bool, mode os.FileMode) error {
	secret, err := from.Secret(ctx, name, optional)
	if err != nil || secret == nil {
		return err
	}
	return f.addData(fmt.Sprintf("Secret %q", name), secret.Data, items, optional, mode)
}

func (f files) addConfigMap(ctx context.Context, from Objects, name string, items []corev1.KeyToPath, optional *bool, mode os.FileMode) error {
	configMap, err := from.ConfigMap(ctx, name, optional)
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

func (f files) addData(of string, data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode os.FileMode) error {
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
				itemMode = modeOf(item.Mode)
			}
			if err := f.add(item.Path, value, itemMode); err != nil {
				return err
			}
		case optional == nil || !*optional:
			return fmt.Errorf("reading key %q of %s: %w", item.Key, of, errMissingKey)
		}
	}
	return nil
}

func (f files) addFields(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode os.FileMode) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return fmt.Errorf("item %q: a source other than fieldRef: %w", item.Path, ErrUnsupported)
		}
		value, err := field(pod, item.FieldRef.FieldPath)
		if err != nil {
			return fmt.Errorf("item %q: %w", item.Path, err)
		}
		itemMode := mode
		if item.Mode != nil {
			itemMode = modeOf(item.Mode)
		}
		if err := f.add(item.Path, []byte(value), itemMode); err != nil {
			return err
		}
	}
	return nil
}

// MountsOf are the mounts of one container.
func MountsOf(container *corev1.Container, volumes map[string]*Volume) (Mounts, error) {
	all := make([]mount, 0, len(container.VolumeMounts))
	for _, m := range container.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			return nil, fmt.Errorf("mounting %s: there is no volume %q", m.MountPath, m.Name)
		}
		if filepath.Clean(m.MountPath) == "/" || m.SubPathExpr != "" {
			return nil, fmt.Errorf("mounting volume %q at %s: a mount of / and subPathExpr: %w", m.Name, m.MountPath, ErrUnsupported)
		}
		source := v.dir
		if m.SubPath != "" {
			if source, ok = below(v.dir, m.SubPath); !ok {
				return nil, fmt.Errorf("mounting volume %q with subPath %q: %w", m.Name, m.SubPath, errPath)
			}
			if v.spec.EmptyDir != nil {
				if err := os.MkdirAll(source, 0o700); err != nil {
					return nil, fmt.Errorf("mounting volume %q: %w", m.Name, err)
				}
			}
		}
		all = append(all, mount{path: m.MountPath, source: source})
	}
	return newMounts(all...), nil
}
