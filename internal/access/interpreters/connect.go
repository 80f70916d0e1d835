package interpreters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// NewLoaded returns an interpreter with the current configuration of a control plane. Later changes
// of the configuration have no effect. It is for commands.
func NewLoaded(ctx context.Context, karmada *rest.Config, o Options) (*Interpreter, error) {
	reader, err := newConfigurationReader(karmada)
	if err != nil {
		return nil, err
	}
	o.Services = ServicesOf(reader)
	rules, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := rules.Load(ctx, reader); err != nil {
		return nil, err
	}
	return rules, nil
}

// newConfigurationReader returns a client for the kinds that configure rules, and for Services. It
// needs no discovery.
func newConfigurationReader(karmada *rest.Config) (client.Reader, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	for _, object := range ConfigurationKinds() {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
		}
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	reader, err := client.New(karmada, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	return reader, nil
}
