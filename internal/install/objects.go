package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install/rendering"
)

// ControlPlaneObjects returns the objects that a control plane needs besides the CRDs, in two
// groups: the namespaces, and all other objects, which can be in these namespaces.
func ControlPlaneObjects(installation rendering.Installation, controlPlane rendering.ControlPlane) (namespaces, others []client.Object, err error) {
	objects, err := installation.ControlPlane(controlPlane)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			namespaces = append(namespaces, object)
			continue
		}
		others = append(others, object)
	}
	return namespaces, others, nil
}

// ServerObjects returns the objects of the control plane that register one aggregated API server: its
// Service and its APIServices. ca is the certificate authority of the server in PEM.
func ServerObjects(installation rendering.Installation, server string, address rendering.Address, ca []byte) ([]client.Object, error) {
	objects, err := installation.ControlPlane(rendering.ControlPlane{CA: ca, APIServers: map[string]rendering.Address{server: address}})
	if err != nil {
		return nil, err
	}
	var registered []client.Object
	for _, object := range objects {
		service, _, _ := unstructured.NestedString(object.Object, "spec", "service", "name")
		if object.GetKind() == "Service" && object.GetName() == server || object.GetKind() == "APIService" && service == server {
			registered = append(registered, object)
		}
	}
	if len(registered) == 0 {
		return nil, fmt.Errorf("%q is no aggregated API server of the chart", server)
	}
	return registered, nil
}
