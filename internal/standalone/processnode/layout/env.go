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

	"karmada.io/karmada/internal/access/podenvironment"
)

// ObjectReader reads the objects to which a Pod refers. If an object of an optional reference is
// missing, the methods return nil.
type ObjectReader interface {
	Secret(ctx context.Context, name string, optional *bool) (*corev1.Secret, error)
	ConfigMap(ctx context.Context, name string, optional *bool) (*corev1.ConfigMap, error)
}

// ErrUnsupported means that a Pod uses a feature that a process on this machine cannot have.
var ErrUnsupported = errors.New("not supported by this node")

var errMissingKey = errors.New("the key does not exist")

// Environment returns a container's environment variables in this order: every program's variables, all keys
// of ConfigMaps and Secrets, and single variables, which may refer to earlier ones.
func Environment(ctx context.Context, pod *corev1.Pod, container *corev1.Container, base []corev1.EnvVar,
	objects ObjectReader) ([]corev1.EnvVar, error) {
	env := &variables{values: map[string]string{}}
	for _, variable := range base {
		env.set(variable.Name, variable.Value)
	}
	for i := range container.EnvFrom {
		if err := env.setAll(ctx, &container.EnvFrom[i], objects); err != nil {
			return nil, err
		}
	}
	for i := range container.Env {
		variable := &container.Env[i]
		if err := validateVariableName(variable.Name); err != nil {
			return nil, err
		}
		value, ok, err := env.resolve(ctx, pod, variable, objects)
		if err != nil {
			return nil, fmt.Errorf("setting variable %s: %w", variable.Name, err)
		}
		if ok {
			env.set(variable.Name, value)
		}
	}
	return env.list(), nil
}

// fixedPrefixes and fixedNames identify variables that Pods cannot set, because these variables
// change how a program is loaded, how its runtime works, or what the node passes to the program.
// In a real container, the effect would be limited to the container. Variables such as
// HTTPS_PROXY, SSL_CERT_FILE, HOME and KUBECONFIG are allowed, because a program that uses them
// can reach nothing that it could not reach without them.
var (
	fixedPrefixes = []string{"LD_", "DYLD_", "GLIBC_", "MALLOC_"}
	fixedNames    = []string{
		"GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE", "GCONV_PATH", "LOCPATH", "NLSPATH", "PATH",
		podenvironment.ServiceAccountVariable, podenvironment.PodAddressVariable, podenvironment.DNSServerVariable,
	}
)

// validateVariableName returns an error if Pods cannot set the variable.
func validateVariableName(name string) error {
	has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if slices.Contains(fixedNames, name) || slices.ContainsFunc(fixedPrefixes, has) {
		return fmt.Errorf("variable %s: %w, because it would change how the process runs: remove it", name, ErrUnsupported)
	}
	return nil
}

// variables are environment variables in the order in which they were set.
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

func (v *variables) setAll(ctx context.Context, source *corev1.EnvFromSource, objects ObjectReader) error {
	data := map[string]string{}
	if ref := source.ConfigMapRef; ref != nil {
		configMap, err := objects.ConfigMap(ctx, ref.Name, ref.Optional)
		if err != nil {
			return err
		}
		if configMap != nil {
			data = maps.Clone(configMap.Data)
		}
	}
	if ref := source.SecretRef; ref != nil {
		secret, err := objects.Secret(ctx, ref.Name, ref.Optional)
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
		// Like a kubelet, skip keys that are not valid names of variables.
		name := source.Prefix + key
		if len(validation.IsEnvVarName(name)) != 0 {
			continue
		}
		if err := validateVariableName(name); err != nil {
			return err
		}
		v.set(name, data[key])
	}
	return nil
}

// resolve returns the value of a variable. ok is false if the optional source of the variable does
// not exist.
func (v *variables) resolve(ctx context.Context, pod *corev1.Pod, variable *corev1.EnvVar,
	objects ObjectReader) (value string, ok bool, err error) {
	source := variable.ValueFrom
	switch {
	case source == nil:
		return expandVariables(variable.Value, v.values), true, nil
	case source.FieldRef != nil:
		value, err := fieldValue(pod, source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		configMap, err := objects.ConfigMap(ctx, ref.Name, ref.Optional)
		if err != nil || configMap == nil {
			return "", false, err
		}
		value, ok := configMap.Data[ref.Key]
		return value, ok, ensureKeyExists(ok, ref.Optional, "ConfigMap", ref.Name, ref.Key)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		secret, err := objects.Secret(ctx, ref.Name, ref.Optional)
		if err != nil || secret == nil {
			return "", false, err
		}
		value, ok := secret.Data[ref.Key]
		return string(value), ok, ensureKeyExists(ok, ref.Optional, "Secret", ref.Name, ref.Key)
	default:
		return "", false, fmt.Errorf("the source: %w: use value, fieldRef, configMapKeyRef or secretKeyRef", ErrUnsupported)
	}
}

func ensureKeyExists(found bool, optional *bool, kind, name, key string) error {
	if found || optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("reading key %q of %s %q: %w", key, kind, name, errMissingKey)
}

// fieldValue returns the value of a Pod field by its path, for example metadata.name.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
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
		return formatLabels(pod.Labels), nil
	case "metadata.annotations":
		return formatLabels(pod.Annotations), nil
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

// formatLabels formats labels as a file of the downward API.
func formatLabels(labels map[string]string) string {
	lines := make([]string, 0, len(labels))
	for key, value := range labels {
		lines = append(lines, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// variableValues returns the values of variables by name.
func variableValues(env []corev1.EnvVar) map[string]string {
	values := map[string]string{}
	for _, variable := range env {
		values[variable.Name] = variable.Value
	}
	return values
}

// expandVariables replaces $(NAME) by the variable's value. $$ is an escaped dollar. References to unknown
// variables are kept.
func expandVariables(text string, values map[string]string) string {
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

// IsOptionalNotFound reports whether an error means that an optional object does not exist.
func IsOptionalNotFound(err error, optional *bool) bool {
	return apierrors.IsNotFound(err) && optional != nil && *optional
}
