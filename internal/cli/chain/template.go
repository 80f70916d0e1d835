package chain

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/cli/command"
)

// CheckArguments returns a usage error unless the arguments name one object: KIND/NAME or KIND NAME.
func CheckArguments(_ *cobra.Command, args []string) error {
	_, _, err := splitArguments(args)
	return err
}

// splitArguments returns the kind and the name of an object.
func splitArguments(args []string) (kind, name string, err error) {
	switch len(args) {
	case 0:
		return "", "", command.NewUsageError("the object is missing: name it as KIND/NAME, such as deployment/web")
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	default:
		return "", "", command.NewUsageError("only one object can be named, not %s", strings.Join(args, " "))
	}
	if kind == "" || name == "" || strings.Contains(name, "/") || strings.Contains(kind, "/") || strings.Contains(kind, ",") {
		return "", "", command.NewUsageError("%q does not name one object: use KIND/NAME, such as deployment/web", strings.Join(args, " "))
	}
	return kind, name, nil
}

// resolve returns the template that the arguments name, in the version that the server prefers.
func resolve(mapper meta.RESTMapper, args []string, namespace string) (Template, error) {
	typed, name, err := splitArguments(args)
	if err != nil {
		return Template{}, err
	}
	mapping, err := mappingOf(mapper, typed)
	if err != nil {
		return Template{}, err
	}
	template := Template{Mapping: mapping, Key: types.NamespacedName{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		template.Key.Namespace = namespace
	}
	return template, nil
}

// mappingOf returns the mapping of a type. The user may write a resource, a kind or a short name,
// each with or without a version and a group.
func mappingOf(mapper meta.RESTMapper, typed string) (*meta.RESTMapping, error) {
	withVersion, resource := schema.ParseResourceArg(typed)
	kind := schema.GroupVersionKind{}
	if withVersion != nil {
		kind, _ = mapper.KindFor(*withVersion)
	}
	if kind.Empty() {
		kind, _ = mapper.KindFor(resource.WithVersion(""))
	}
	group := kind.GroupKind()
	if kind.Empty() {
		_, group = schema.ParseKindArg(typed)
	}
	// Without a version, the mapper returns the version that the server prefers. Policies and
	// bindings use that version.
	mapping, err := mapper.RESTMapping(group)
	if err == nil && kind.Empty() {
		// The mapper also has each kind in lower case, which is not the kind of the objects.
		if kind, err = mapper.KindFor(mapping.Resource); err == nil {
			mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the control plane has no resource type %q", typed)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	return mapping, nil
}
