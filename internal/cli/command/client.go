package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewKindClient returns a client of the control plane for a single kind. It sends no discovery
// requests.
func NewKindClient(config *rest.Config, kind schema.GroupVersionKind, scope meta.RESTScope, addToScheme func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, scope)
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane (%s): %w", config.Host, err)
	}
	return karmada, nil
}
