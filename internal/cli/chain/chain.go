// Package chain reads the objects of the control plane and of the members that belong to one template,
// for the commands that explain or show how a template is propagated.
//
// Invariants: the number of requests to the control plane does not depend on the number of clusters.
// Each request has a time limit. An object that cannot be read is returned as an error in its place,
// so that the other objects are still shown.
package chain

import (
	"fmt"
	"net/http"

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
	"karmada.io/karmada/internal/cli/targetcluster"
)

// Flags are the flags of a command that reads one template.
type Flags struct {
	targetcluster.ClientFlags
	Timeout targetcluster.RequestTimeout
}

// NewFlags returns the flags for a command of the program.
func NewFlags(program *command.Program) Flags {
	return Flags{ClientFlags: targetcluster.ClientFlags{Program: program}}
}

// AddFlags adds the flags, and the completion of the template, to a command.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.ClientFlags.AddFlags(cmd)
	factory := f.NewFactory(&targetcluster.Target{}, 0)
	f.AddNamespaceFlag(cmd, factory)
	f.Timeout.AddFlag(cmd)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(factory)
}

// Template identifies a template in the control plane.
type Template struct {
	Mapping *meta.RESTMapping
	Key     types.NamespacedName
}

// Kind returns the kind in the version that the control plane prefers.
func (t Template) Kind() schema.GroupVersionKind { return t.Mapping.GroupVersionKind }

// Reader reads the objects of one template.
type Reader struct {
	Template Template
	// types has the types that the control plane serves.
	types meta.RESTMapper
	// karmada reads typed objects and the template.
	karmada client.Client
	// config and transport are those of the control plane. The requests to all members share the
	// connection.
	config    *rest.Config
	transport *http.Client
	timeout   targetcluster.RequestTimeout
}

// NewReader returns a reader for the template that the arguments name. It requests only the types
// that the control plane serves.
func (f *Flags) NewReader(args []string) (*Reader, error) {
	if err := f.CheckKubeconfig(); err != nil {
		return nil, err
	}
	factory := f.NewFactory(&targetcluster.Target{}, f.Timeout.HTTPTimeout())
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	template, err := resolve(mapper, args, namespace)
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
	scheme, known := runtime.NewScheme(), NewMapper()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
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

// NewMapper returns a mapper of the kinds that commands read besides templates. It needs no discovery.
func NewMapper() *meta.DefaultRESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range kinds() {
		known.Add(kind, scope)
	}
	return known
}

func kinds() map[schema.GroupVersionKind]meta.RESTScope {
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
