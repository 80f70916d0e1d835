// Package explain contains the commands that explain how templates are propagated: trace, tree and
// simulate. Trace and tree read the objects of one template with a Reader, and print what
// internal/domain/diagnose decides about them. Simulate reads the control plane for
// internal/domain/simulation.
//
// Invariants:
//   - The number of requests to the control plane does not depend on the number of clusters.
//   - Each request has a time limit.
//   - An object that cannot be read is returned as an error in its place, so that the other objects
//     are still shown.
//   - Equal states give equal output.
package explain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
)

// Flags are the flags of a command that reads one template.
type Flags struct {
	command.ClientFlags
	Timeout command.RequestTimeout
}

// NewFlags returns the flags for a command of the program.
func NewFlags(program *command.Program) Flags {
	return Flags{ClientFlags: command.ClientFlags{Program: program}}
}

// AddFlags adds the flags to a command, and completes its arguments with templates.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.ClientFlags.AddFlags(cmd)
	factory := f.NewFactory(&command.Target{}, 0)
	f.AddNamespaceFlag(cmd, factory)
	f.Timeout.AddFlag(cmd)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(factory)
}

// Template identifies a template in the control plane.
type Template struct {
	Mapping *meta.RESTMapping
	Key     types.NamespacedName
}

// Kind returns the kind in its preferred version.
func (t Template) Kind() schema.GroupVersionKind { return t.Mapping.GroupVersionKind }

// Reader reads the objects of one template.
type Reader struct {
	Template Template
	// types maps the types that the control plane serves.
	types meta.RESTMapper
	// karmada reads typed objects and the template.
	karmada client.Client
	// config and transport belong to the control plane. Requests to members share them, because they go through the cluster
	// proxy.
	config    *rest.Config
	transport *http.Client
	timeout   command.RequestTimeout
}

// NewReader returns a reader for the template that the arguments name. It sends only discovery requests.
func (f *Flags) NewReader(args []string) (*Reader, error) {
	if err := f.VerifyKubeconfig(); err != nil {
		return nil, err
	}
	factory := f.NewFactory(&command.Target{}, f.Timeout.HTTPTimeout())
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	template, err := Resolve(mapper, args, namespace)
	if err != nil {
		return nil, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	reader := &Reader{Template: template, types: mapper, config: config, timeout: f.Timeout}
	return reader, reader.connect()
}

// connect creates the clients. It sends no request.
func (r *Reader) connect() error {
	var err error
	if r.transport, err = rest.HTTPClientFor(r.config); err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	scheme, known := runtime.NewScheme(), newMapper()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering API types: %w", err)
		}
	}
	mapping := r.Template.Mapping
	known.AddSpecific(mapping.GroupVersionKind, mapping.Resource, mapping.Resource, mapping.Scope)
	r.karmada, err = client.New(r.config, client.Options{HTTPClient: r.transport, Scheme: scheme, Mapper: known})
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	return nil
}

// newMapper returns a mapper for the kinds of Karmada, which needs no discovery.
func newMapper() *meta.DefaultRESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range karmadaKinds() {
		known.Add(kind, scope)
	}
	return known
}

func karmadaKinds() map[schema.GroupVersionKind]meta.RESTScope {
	return map[schema.GroupVersionKind]meta.RESTScope{
		clusterv1alpha1.GroupVersion.WithKind("Cluster"):                 meta.RESTScopeRoot,
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"):        meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"): meta.RESTScopeRoot,
		policyv1alpha1.GroupVersion.WithKind("OverridePolicy"):           meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"):    meta.RESTScopeRoot,
		workv1alpha1.GroupVersion.WithKind("Work"):                       meta.RESTScopeNamespace,
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"):            meta.RESTScopeNamespace,
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"):     meta.RESTScopeRoot,
	}
}

// validateArguments returns a usage error unless the arguments name exactly one object: KIND/NAME or KIND NAME.
func validateArguments(_ *cobra.Command, args []string) error {
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

// Resolve returns the template that the arguments name, in the preferred version of its kind.
func Resolve(mapper meta.RESTMapper, args []string, namespace string) (Template, error) {
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

// mappingOf returns the REST mapping of a type. typed is a resource, a kind or a short name, each with or without a version and
// a group.
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
	// Without a version, the mapper returns the preferred version, which policies and bindings use.
	mapping, err := mapper.RESTMapping(group)
	if err == nil && kind.Empty() {
		// The mapper also knows each kind in lower case, but objects have the kind in its original case.
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
