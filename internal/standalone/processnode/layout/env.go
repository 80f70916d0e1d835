package layout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"karmada.io/karmada/internal/programs/flags"
)

// Objects reads the objects that a Pod refers to. The object of a reference that
// may be absent is nil then.
type Objects interface {
	Secret(ctx context.Context, name string, optional *bool) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, name string, optional *bool) (*corev1.ConfigMap, error)
}

// ErrUnsupported tells that a Pod asks for what a program on this machine cannot
// have.
var ErrUnsupported = errors.New("this node does not support it")

var errMissingKey = errors.New("there is no such key")

// Environment is what a container finds in its environment, in order: what every
// process has, whole ConfigMaps and Secrets, and single variables, which may refer
// to those before them.
func Environment(ctx context.Context, pod *corev1.Pod, container *corev1.Container, given []corev1.EnvVar, from Objects) ([]corev1.EnvVar, error) {
	env := &variables{values: map[string]string{}}
	for _, variable := range given {
		env.set(variable.Name, variable.Value)
	}
	for i := range container.EnvFrom {
		if err := env.setAll(ctx, &container.EnvFrom[i], from); err != nil {
			return nil, err
		}
	}
	for i := range container.Env {
		variable := &container.Env[i]
		if err := checkName(variable.Name); err != nil {
			return nil, err
		}
		value, ok, err := env.resolve(ctx, pod, variable, from)
		if err != nil {
			return nil, fmt.Errorf("setting variable %s: %w", variable.Name, err)
		}
		if ok {
			env.set(variable.Name, value)
		}
	}
	return env.list(), nil
}

// fixedPrefixes and fixedNames are variables that Pods cannot set: they change how a
// program is loaded, what its runtime does, or what the node tells it. A container
// would keep their effect to itself. Variables such as HTTPS_PROXY, SSL_CERT_FILE,
// HOME and KUBECONFIG change only what the program does with what it may reach anyway.
var (
	fixedPrefixes = []string{"LD_", "DYLD_", "GLIBC_", "MALLOC_"}
	fixedNames    = []string{
		"GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE", "GCONV_PATH", "LOCPATH", "NLSPATH", "PATH",
		flags.ServiceAccountVariable, flags.PodAddressVariable,
	}
)

// checkName returns an error if Pods cannot set the variable.
func checkName(name string) error {
	has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if slices.Contains(fixedNames, name) || slices.ContainsFunc(fixedPrefixes, has) {
		return fmt.Errorf("variable %s: %w, for it would change how the process runs: leave it out", name, ErrUnsupported)
	}
	return nil
}

// variables are set in an order and read by name.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) list() []corev1.EnvVar {
	list := make([]corev1.EnvVar, 0, len(v.names))
	for _, name := range v.names {
		list = append(list, corev1.EnvVar{Name: name, Value: v.values[name]})
	}
	return list
}

func (v *variables) setAll(ctx context.Context, source *corev1.EnvFromSource, from Objects) error {
	data := map[string]string{}
	if ref := source.ConfigMapRef; ref != nil {
		configMap, err := from.ConfigMap(ctx, ref.Name, ref.Optional)
		if err != nil {
			return err
		}
		if configMap != nil {
			data = maps.Clone(configMap.Data)
		}
	}
	if ref := source.SecretRef; ref != nil {
		secret, err := from.Secret(ctx, ref.Name, ref.Optional)
		if err != nil {
			return err
		}
		if secret != nil {
			for key, value := range secret.Data {
				data[key] = string(value)
			}
		}
	}
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		// Keys that no variable can be called are left out, as everywhere.
		name := source.Prefix + key
		if len(validation.IsEnvVarName(name)) != 0 {
			continue
		}
		if err := checkName(name); err != nil {
			return err
		}
		v.set(name, data[key])
	}
	return nil
}

// resolve is the value of a variable; not ok tells that what it refers to may be
// absent and is.
func (v *variables) resolve(ctx context.Context, pod *corev1.Pod, variable *corev1.EnvVar, from Objects) (value string, ok bool, err error) {
	source := variable.ValueFrom
	switch {
	case source == nil:
		return expand(variable.Value, v.values), true, nil
	case source.FieldRef != nil:
		value, err := field(pod, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		configMap, err := from.ConfigMap(ctx, ref.Name, ref.Optional)
		if err != nil || configMap == nil {
			return "", false, err
		}
		value, ok := configMap.Data[ref.Key]
		return value, ok, demand(ok, ref.Optional, "ConfigMap", ref.Name, ref.Key)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		secret, err := from.Secret(ctx, ref.Name, ref.Optional)
		if err != nil || secret == nil {
			return "", false, err
		}
		value, ok := secret.Data[ref.Key]
		return string(value), ok, demand(ok, ref.Optional, "Secret", ref.Name, ref.Key)
	default:
		return "", false, fmt.Errorf("its source: %w: give a value, fieldRef, configMapKeyRef or secretKeyRef", ErrUnsupported)
	}
}

func demand(found bool, optional *bool, kind, name, key string) error {
	if found || optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("reading key %q of %s %q: %w", key, kind, name, errMissingKey)
}

// field is what a path such as metadata.name says of a Pod.
func field(pod *corev1.Pod, path string) (string, error) {
	if name, key, ok := strings.Cut(path, "['"); ok {
		key = strings.TrimSuffix(key, "']")
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return listed(pod.Labels), nil
	case "metadata.annotations":
		return listed(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	default:
		return "", fmt.Errorf("field %q: %w", path, ErrUnsupported)
	}
}

// listed are labels as a file of the downward API shows them.
func listed(labels map[string]string) string {
	lines := make([]string, 0, len(labels))
	for key, value := range labels {
		lines = append(lines, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// expand replaces $(NAME) by the variable; $$ stands for one dollar, and a name
// that is not set stays as it is.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(text, "$")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		switch name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")"); {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case !strings.HasPrefix(after, "(") || !closed:
			out.WriteByte('$')
			text = after
		default:
			value, set := values[name]
			if !set {
				value = "$(" + name + ")"
			}
			out.WriteString(value)
			text = rest
		}
	}
}

// Absent reports whether an error is that an object is not there and need not be.
func Absent(err error, optional *bool) bool {
	return apierrors.IsNotFound(err) && optional != nil && *optional
}
